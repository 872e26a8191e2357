/**
 * Attacks by way of webhooks: receivers that never answer, and receivers that turn a webhook into a request.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, request, type IncomingHttpHeaders } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'

/** Max webhook URLs of start-stream. */
const URLS_PER_STREAM = 16

export interface SilentFigures {
  /** URLs that never answer, each with one event and more. */
  readonly urls: number
  /** Connections to them, at most at a time. */
  readonly maxConnections: number
  /** Time until a receiver that answers had `stream.ready`, started after the others; undefined: never. */
  readonly healthyMs: number | undefined
  /** Highest growth of the service's resident memory while it lasted, where its process is known. */
  readonly rssGrowthBytes: number | undefined
}

/**
 * Starts streams with URLs on `ports` that accept connections and never answer, then one with a healthy receiver, waits
 * for that one's webhook, and watches on until `watchMs` are over. The streams are left running.
 */
export async function silentReceivers(
  target: Target,
  signal: AbortSignal,
  { urls = 3200, ports = 64, watchMs = 20_000 } = {},
): Promise<SilentFigures> {
  const silent = await Promise.all(Array.from({ length: ports }, () => startSilent()))
  const healthy = await startReceiver(() => undefined)
  const before = rssBytes(target)
  let [maxConnections, maxRss] = [0, before]
  const watch = setInterval(() => {
    maxConnections = Math.max(maxConnections, sum(silent.map(({ sockets }) => sockets.size)))
    if (maxRss !== undefined) maxRss = Math.max(maxRss, rssBytes(target) ?? 0)
  }, 20)
  try {
    for (let first = 0; first < urls && !signal.aborted; first += URLS_PER_STREAM) {
      const webhookUrls = Array.from(
        { length: Math.min(URLS_PER_STREAM, urls - first) },
        (_, i) => {
          const index = first + i
          return `http://127.0.0.1:${silent[index % ports]!.port}/${index}`
        },
      )
      await startStream(target, `silent-${first}`, webhookUrls)
    }
    const startedMs = performance.now()
    await startStream(target, 'healthy', [healthy.url])
    let healthyMs: number | undefined
    const isWatching = () => healthyMs === undefined || performance.now() - startedMs < watchMs
    while (isWatching() && !signal.aborted) {
      await sleep(5)
      if (healthy.received() > 0) healthyMs ??= performance.now() - startedMs
    }
    return {
      urls,
      maxConnections,
      healthyMs,
      rssGrowthBytes: before === undefined ? undefined : maxRss! - before,
    }
  } finally {
    clearInterval(watch)
    healthy.close()
    for (const { close } of silent) close()
  }
}

export interface ForwardFigures {
  /** Types of the webhooks that were forwarded, in order. */
  readonly types: readonly string[]
  /** Status of each answer, three for each webhook: status, stop-stream, start-stream. */
  readonly answers: readonly number[]
}

/**
 * A receiver that sends each webhook it gets on to the API unchanged, headers and body, until all of `types` came.
 *
 * @param provoke  makes the service send them to a URL; by default a stream is started and stopped
 */
export async function forwardWebhooks(
  target: Target,
  signal: AbortSignal,
  {
    types = ['stream.ready', 'stream.stopped'] as readonly string[],
    provoke = (url: string): unknown => startAndStop(target, url),
  } = {},
): Promise<ForwardFigures> {
  const came: string[] = []
  const forwarded: Promise<number>[] = []
  const receiver = await startReceiver((headers, body) => {
    came.push((JSON.parse(body.toString()) as { type: string }).type)
    const send = (method: string, call: string) =>
      forwarded.push(forward(target, method, `/api/${call}`, headers, body))
    send('GET', 'status')
    send('POST', 'stop-stream')
    send('POST', 'start-stream')
  })
  try {
    await provoke(receiver.url)
    while (!signal.aborted && !types.every((type) => came.includes(type))) await sleep(20)
    return { types: came, answers: await Promise.all(forwarded) }
  } finally {
    receiver.close()
  }
}

async function startAndStop(target: Target, webhookUrl: string): Promise<void> {
  const streamId = 'forwarded'
  await startStream(target, streamId, [webhookUrl])
  const url = `http://${target.host}:${target.httpPort}`
  await callApi(url, 'stop-stream', { stream_id: streamId }, target.hmacSecret)
}

function startStream(target: Target, streamId: string, webhookUrls: readonly string[]) {
  const url = `http://${target.host}:${target.httpPort}`
  const body = { stream_id: streamId, webhook_urls: webhookUrls }
  return callApi(url, 'start-stream', body, target.hmacSecret)
}

function forward(
  { host, httpPort: port }: Target,
  method: string,
  path: string,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({ host, port, method, path, headers, agent: false }, (reply) => {
      reply.resume()
      resolve(reply.statusCode ?? 0)
    })
    call.on('error', reject)
    call.end(body)
  })
}

async function startReceiver(onWebhook: (headers: IncomingHttpHeaders, body: Buffer) => void) {
  let received = 0
  const server = createHttpServer((incoming, reply) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      received++
      reply.writeHead(204).end()
      onWebhook(incoming.headers, Buffer.concat(chunks))
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}/`,
    received: () => received,
    close: () => (server.close(), server.closeAllConnections()),
  }
}

async function startSilent() {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // Reads all bytes, since an unread socket emits no end.
    socket.resume()
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  const port = await listen(server)
  const close = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port, sockets, close }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', 1024, () => resolve((server.address() as AddressInfo).port))
  })
}

function rssBytes({ pid }: Target): number | undefined {
  if (pid === undefined) return undefined
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kib) * 1024
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
