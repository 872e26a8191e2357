import { PassThrough } from 'node:stream'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createClientErrorHandler } from '../../src/http/error-handler.ts'

/** Socket that keeps its reply, and counts the requests that are parsed. */
class FakeSocket extends PassThrough {
  reply = ''
  parsed = 0

  constructor() {
    super()
    this.on('data', () => this.parsed++)
  }

  override write(reply: unknown): boolean {
    this.reply = String(reply)
    return true
  }

  destroySoon(): void {
    this.destroy()
  }
}

const error = (code: string): NodeJS.ErrnoException => Object.assign(new Error(), { code })

t.test('answers a crowd of late requests with 408, at most 16 per turn', async (t) => {
  const handle = createClientErrorHandler()
  const sockets = Array.from({ length: 200 }, () => new FakeSocket())
  for (const socket of sockets) {
    handle(error('ERR_HTTP_REQUEST_TIMEOUT'), socket as unknown as Socket)
  }
  const answered = () => sockets.filter(({ destroyed }) => destroyed).length
  const counts = [answered()]
  while (answered() < sockets.length) {
    await nextTurn()
    counts.push(answered())
  }
  const perTurn = counts.map((count, index) => count - (counts[index - 1] ?? 0))
  t.ok(Math.max(...perTurn) <= 16, perTurn.join(' '))
  for (const { reply } of sockets) t.match(reply, /^HTTP\/1\.1 408 Request Timeout\r\n.*\}$/s)
})

t.test('does not parse the rest of a late request that waits for its answer', async (t) => {
  const handle = createClientErrorHandler()
  const sockets = Array.from({ length: 40 }, () => new FakeSocket())
  for (const socket of sockets) {
    handle(error('ERR_HTTP_REQUEST_TIMEOUT'), socket as unknown as Socket)
  }
  const last = sockets.at(-1)!
  t.notOk(last.destroyed)
  last.push('GET / HTTP/1.1\r\n\r\n')
  while (!last.destroyed) await nextTurn()
  t.equal(last.parsed, 0)
})

t.test('answers a malformed request at once', async (t) => {
  const handle = createClientErrorHandler()
  for (const [code, status] of [
    ['HPE_INVALID_METHOD', '400 Bad Request'],
    ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ] as const) {
    const socket = new FakeSocket()
    handle(error(code), socket as unknown as Socket)
    t.ok(socket.destroyed)
    t.match(socket.reply, `HTTP/1.1 ${status}\r\nConnection: close\r\n`)
    t.match(socket.reply, /"code":"REQUEST_MALFORMED"\}$/)
  }
})
