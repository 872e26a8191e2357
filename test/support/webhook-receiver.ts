/**
 * HTTP server that receives webhooks and can delay, fail, redirect or ignore them.
 *
 * @module
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Test {
  teardown(close: () => Promise<unknown>): unknown
}

export interface ReceivedWebhook {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Received bytes, as covered by `webhook-signature`. */
  readonly bytes: Buffer
  readonly event: {
    readonly id: string
    readonly type: string
    readonly created_at: string
    readonly stream_id: string
    readonly status: string
    // The tests check it with t.match.
    readonly data: Record<string, any>
  }
}

export interface WebhookReceiver {
  readonly url: string
  /** All received webhooks in order, failed ones included. */
  readonly received: readonly ReceivedWebhook[]
  /** Waits for the next webhook that this method has not returned yet. */
  next(): Promise<ReceivedWebhook>
  /** Handler of further requests; default 204. It may leave a reply open. */
  answer: (reply: ServerResponse, webhook: ReceivedWebhook) => void
  close(): Promise<void>
}

/** Listens on a free port of the loopback until the test ends. */
export async function startWebhookReceiver(t: Test, port = 0): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = []
  const waiting: ((webhook: ReceivedWebhook) => void)[] = []
  let handedOut = 0

  const server = createServer((request, reply) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const bytes = Buffer.concat(chunks)
      const { method = '', url: path = '', headers } = request
      const event = JSON.parse(bytes.toString()) as ReceivedWebhook['event']
      const webhook = { method, path, headers, bytes, event }
      received.push(webhook)
      receiver.answer(reply, webhook)
      const first = waiting.shift()
      if (first !== undefined) {
        handedOut++
        first(webhook)
      }
    })
  })

  const receiver: WebhookReceiver = {
    url: '',
    received,
    next: () => {
      const webhook = received[handedOut]
      if (webhook === undefined) return new Promise((resolve) => waiting.push(resolve))
      handedOut++
      return Promise.resolve(webhook)
    },
    answer: (reply) => reply.writeHead(204).end(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => receiver.close())
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
  })
}

/** @returns first received event of a type */
export function findEvent(
  { received }: WebhookReceiver,
  type: string,
): ReceivedWebhook['event'] | undefined {
  return received.find(({ event }) => event.type === type)?.event
}

/** Types of the received events in order, without those about viewers, whose number depends on the speed of the machine. */
export function receivedTypes({ received }: WebhookReceiver): string[] {
  return received.map(({ event }) => event.type).filter((type) => type !== 'stream.viewers')
}
