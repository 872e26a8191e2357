/**
 * One HTTP POST to one of the addresses that were checked for it.
 *
 * @module
 */
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'

export interface Post {
  readonly url: URL
  readonly headers: http.OutgoingHttpHeaders
  readonly body: Buffer
  /** Where the connection may go to, in this order; at least one. Host and server name are those of the URL. */
  readonly addresses: readonly string[]
}

/** Bytes of an answer's body that are read out of courtesy; nobody looks at them. */
const MAX_ANSWER_BYTES = 16 * 1024

/**
 * Sends it on a connection of its own and reads the answer to its end, or to its first 16 KiB. Redirects are answers
 * like others.
 *
 * @returns the status of the answer, also where `signal` aborts or the connection breaks after it came
 * @throws {Error} with a `code`: `NO_ANSWER`, or that of the system or of the abort
 */
export function post(
  { url, headers, body, addresses }: Post,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === 'https:' ? https : http
    const outgoing = request(url, {
      method: 'POST',
      // A new one: connections are not kept.
      agent: false,
      headers: { ...headers, 'content-length': body.length },
      lookup: lookUpIn(addresses),
      signal,
    })
    let status: number | undefined
    const settle = (error: Error) => (status === undefined ? reject(error) : resolve(status))
    // After 101 Switching Protocols, too, which is not asked for.
    const settleAtClose = () => settle(unanswered())
    outgoing.on('error', settle)
    outgoing.on('close', settleAtClose)
    outgoing.on('response', (answer) => {
      status = answer.statusCode
      let sizeBytes = 0
      answer.on('data', (chunk: Buffer) => {
        sizeBytes += chunk.length
        if (sizeBytes > MAX_ANSWER_BYTES) answer.destroy()
      })
      answer.on('error', settle)
      answer.on('close', settleAtClose)
    })
    outgoing.end(body)
  })
}

function unanswered(): Error {
  return Object.assign(new Error('the connection was closed without an answer'), {
    code: 'NO_ANSWER',
  })
}

/** Answers with addresses that are known, so that the one that was checked is the one that is connected to. */
function lookUpIn(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, { all }, callback) => {
    if (all === true) callback(null, known)
    else callback(null, known[0]!.address, known[0]!.family)
  }
}
