/**
 * HTTP/2 clients: a session, and requests on it.
 *
 * @module
 */
import { connect, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import { once } from 'node:events'
import type { Reply } from './memory-service.ts'

interface Test {
  teardown(close: () => unknown): unknown
}

/** Connects over TLS, and waits for the settings of the server; the connection ends with the test. */
export async function openSession(
  t: Test,
  { url }: { readonly url: string },
): Promise<ClientHttp2Session> {
  const session = connect(url, { rejectUnauthorized: false })
  session.on('error', () => undefined)
  t.teardown(() => session.destroy())
  // In any order.
  await Promise.all([once(session, 'connect'), once(session, 'remoteSettings')])
  return session
}

/** Sends a request on a stream of its own. */
export async function callStream(
  session: ClientHttp2Session,
  method: string,
  path: string,
  { headers = {}, body }: { headers?: OutgoingHttpHeaders; body?: string | Buffer } = {},
): Promise<Reply> {
  const stream = session.request(
    { ':method': method, ':path': path, ...headers },
    { endStream: body === undefined },
  )
  if (body !== undefined) stream.end(body)
  const replied = once(stream, 'response')
  const ended = once(stream, 'end')
  ended.catch(() => undefined)
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [reply] = (await replied) as [Record<string, string>]
  await ended
  return { status: Number(reply[':status']), headers: reply, body: Buffer.concat(chunks) }
}
