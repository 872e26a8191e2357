/**
 * Whether the origin of an edge answers: a line in the log when it does not, and when it does again.
 *
 * @module
 */
import type { Logger } from '../../logger.ts'
import { isOwnLimit, type NodeClient } from './node-client.ts'

interface OriginWatchOptions {
  readonly client: Pick<NodeClient, 'get'>
  /** `EDGE_OF` */
  readonly url: string
  /** Aborts when the edge closes. */
  readonly signal: AbortSignal
  readonly logger: Logger
}

/** Call `probe` at the start, and about once a second. */
export class OriginWatch {
  readonly #options: OriginWatchOptions
  #isAway = false
  #isProbing = false

  constructor(options: OriginWatchOptions) {
    this.#options = options
  }

  /** Whether the origin did not answer when it was asked last. */
  get isAway(): boolean {
    return this.#isAway
  }

  /** Asks the origin, unless it is being asked. Never rejects. */
  async probe(): Promise<void> {
    if (this.#isProbing) return
    this.#isProbing = true
    const failure = await this.#ask()
    this.#isProbing = false
    const { url: origin, signal, logger } = this.#options
    const isAway = failure !== undefined
    if (signal.aborted || isAway === this.#isAway) return
    this.#isAway = isAway
    if (isAway) {
      logger.warn(
        { origin, reason: failure },
        'the origin does not answer: viewers get 503. Check EDGE_OF, and that the origin runs',
      )
    } else logger.info({ origin }, 'the origin answers again')
  }

  /** @returns why the origin cannot serve; for one that is away a proxy answers with 502 to 504 */
  async #ask(): Promise<string | undefined> {
    const { client, url, signal } = this.#options
    try {
      const { status } = await client.get(url, { path: '/health/live', signal })
      return status >= 500 ? `answered ${status}` : undefined
    } catch (error) {
      if (isOwnLimit(error)) return undefined
      const { code, message } = error as NodeJS.ErrnoException
      return code ?? message
    }
  }
}
