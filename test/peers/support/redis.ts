/**
 * Redis servers and Sentinels that end with the test, without persistence.
 *
 * @module
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { start, type Program } from '../../support/process.ts'
import { until } from '../../support/until.ts'

/** Longest pause of a server on a busy machine. */
const MAX_REPLY_MS = 10_000

interface Test {
  teardown(close: () => unknown): unknown
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  readonly program: Program
}

/** @param args  further settings, as `--name value` */
export async function startRedis(
  t: Test,
  { port, args = [] }: { readonly port?: number; readonly args?: readonly string[] } = {},
): Promise<RedisServer> {
  const own = port ?? (await freePort())
  const bind = ['--port', String(own), '--bind', '127.0.0.1']
  const volatile = ['--save', '', '--appendonly', 'no', '--dir', tmpdir()]
  const program = start(t, 'redis-server', [...bind, ...volatile, ...args])
  await answers(own, program)
  return { url: `redis://127.0.0.1:${own}`, port: own, program }
}

/**
 * Starts a Sentinel that finds the master lost after 500 ms and needs no other Sentinel to replace it.
 *
 * @param options.settings  further lines of its configuration
 */
export async function startSentinel(
  t: Test,
  masterPort: number,
  {
    quorum = 1,
    settings = [],
  }: { readonly quorum?: number; readonly settings?: readonly string[] } = {},
): Promise<RedisServer> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sentinel-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'sentinel.conf')
  writeFileSync(
    file,
    `port ${port}
bind 127.0.0.1
dir ${folder}
sentinel monitor main 127.0.0.1 ${masterPort} ${quorum}
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 3000
${settings.join('\n')}
`,
  )
  const program = start(t, 'redis-sentinel', [file])
  await answers(port, program)
  return { url: `redis+sentinel://127.0.0.1:${port}/main`, port, program }
}

/** Waits for the reply to a PING, or its refusal for want of a password. */
async function answers(port: number, { child, output }: Program): Promise<void> {
  await until('Redis answers', async () => {
    if (child.exitCode !== null) throw new Error(`Redis ended: ${output()}`)
    return /PONG|NOAUTH/.test(await ask(port, 'PING').catch(String))
  })
}

/**
 * @returns reply to an inline command, as RESP
 * @throws {Error} if the server refuses the command, or there is no server
 */
export async function ask(port: number, command: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setTimeout(MAX_REPLY_MS, () => socket.destroy(new Error(`${command}: no reply`)))
  socket.write(`${command}\r\n`)
  try {
    const [data] = (await once(socket, 'data')) as [Buffer]
    const reply = data.toString()
    if (reply.startsWith('-')) throw new Error(`${command}: ${reply}`)
    return reply
  } finally {
    socket.destroy()
  }
}
