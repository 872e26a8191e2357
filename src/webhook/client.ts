/**
 * One attempt to deliver a webhook: look-up, address check, POST.
 *
 * @module
 */
import type { OutgoingHttpHeaders } from 'node:http'
import { hostOf, mayConnect, type AllowList } from './address-rules.ts'
import { LookUp, type LookUpOptions } from './look-up.ts'
import { post } from './post.ts'

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
    headers: OutgoingHttpHeaders,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<number> {
    const host = hostOf(url)
    const found = await unlessAborted(this.#lookUp.find(host), signal)
    const addresses = found.filter((address) => mayConnect(this.#allowed, host, address))
    if (addresses.length === 0) {
      throw Object.assign(new Error('no allowed address'), { code: 'ADDRESS_FORBIDDEN' })
    }
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
