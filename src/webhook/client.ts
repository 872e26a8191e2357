/**
 * One attempt to deliver a webhook: look-up, address check, POST.
 *
 * @module
 */
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { hostOf, type AllowList } from '../outbound/address-rules.ts'
import { findAllowed, LookUp, type LookUpOptions } from '../outbound/look-up.ts'

/** Maximum number of bytes of a response body that are read and discarded, to let the receiver finish. */
const MAX_RESPONSE_BYTES = 16 * 1024

/** Maximum number of interim responses (1xx) before the final one; Node limits each to 16 KiB. */
const MAX_INTERIM_RESPONSES = 8

export class WebhookClient {
  readonly #allowed: AllowList
  readonly #lookUp: LookUp

  constructor(allowed: AllowList, options: LookUpOptions) {
    this.#allowed = allowed
    this.#lookUp = new LookUp(options)
  }

  /**
   * @returns status of the response
   * @throws {Error} with `code` `ADDRESS_FORBIDDEN`, `NO_ANSWER` or a Node.js error code; any error after an abort
   */
  async send(
    url: URL,
    headers: http.OutgoingHttpHeaders,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<number> {
    const host = hostOf(url)
    const found = findAllowed(this.#lookUp, this.#allowed, host)
    const addresses = await unlessAborted(found, signal)
    return post({ url, headers, body, addresses }, signal)
  }

  /** Cancels pending look-ups. */
  close(): void {
    this.#lookUp.close()
  }
}

/** Stops waiting for a look-up without canceling it, since other attempts may share it. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(signal.reason as Error))
    promise.then(resolve, reject)
  })
}

interface Post {
  readonly url: URL
  readonly headers: http.OutgoingHttpHeaders
  readonly body: Buffer
  /** Addresses to try, at least one. Host header and TLS server name are those of the URL. */
  readonly addresses: readonly string[]
}

/**
 * Sends the request on a connection of its own and reads the response to its end, at most 16 KiB. Redirects are not
 * followed.
 *
 * @returns status of the response, even if `signal` aborts or the connection breaks while its body arrives
 * @throws {Error} with the `code` `NO_ANSWER` or that of a Node.js error; any error after an abort
 */
function post({ url, headers, body, addresses }: Post, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === 'https:' ? https : http
    const outgoing = request(url, {
      method: 'POST',
      // A new connection each time.
      agent: false,
      headers: { ...headers, 'content-length': body.length },
      lookup: lookUpIn(addresses),
      signal,
    })
    let status: number | undefined
    const settle = (error: Error) => (status === undefined ? reject(error) : resolve(status))
    const settleAtClose = () => settle(noResponse())
    let interimResponses = 0
    outgoing.on('error', settle)
    // An unsolicited 101 Switching Protocols also ends here: it emits no 'response'.
    outgoing.on('close', settleAtClose)
    outgoing.on('information', () => {
      if (++interimResponses > MAX_INTERIM_RESPONSES) outgoing.destroy(noResponse())
    })
    outgoing.on('response', (response) => {
      status = response.statusCode
      let sizeBytes = 0
      response.on('data', (chunk: Buffer) => {
        sizeBytes += chunk.length
        if (sizeBytes > MAX_RESPONSE_BYTES) response.destroy()
      })
      response.on('error', settle)
      response.on('close', settleAtClose)
    })
    outgoing.end(body)
  })
}

function noResponse(): Error {
  return Object.assign(new Error('no final response'), { code: 'NO_ANSWER' })
}

/** Resolves to the given addresses, so that the connection goes to an address that was checked. */
function lookUpIn(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, { all }, callback) => {
    if (all === true) callback(null, known)
    else callback(null, known[0]!.address, known[0]!.family)
  }
}
