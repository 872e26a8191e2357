/**
 * Whether the origin of an edge answers: a line in the log when it does not, and when it does again.
 *
 * @module
 */
import type { Logger } from '../../logger.ts'
import { isOwnLimit, type NodeClient } from './node-client.ts'

/** Probes in a row that fail while an origin is away: one may fail where it has too many connections. */
const MAX_FAILURES = 3

/** Maximum time for the answer to a probe. */
const TIMEOUT_SEC = 3

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
  /** Number of probes that have failed since the last answer. The first probe decides alone. */
  #failures = MAX_FAILURES - 1
  #isProbing = false

  constructor(options: OriginWatchOptions) {
    this.#options = options
  }

  /** Whether the origin has not answered the last probes. */
  get isAway(): boolean {
    return this.#failures >= MAX_FAILURES
  }

  /** Asks the origin, unless it is being asked. Never rejects. */
  async probe(): Promise<void> {
    if (this.#isProbing) return
    this.#isProbing = true
    const result = await this.#ask()
    this.#isProbing = false
    const { url: origin, signal, logger } = this.#options
    if (result === 'unknown' || signal.aborted) return
    const wasAway = this.isAway
    this.#failures = result === 'answered' ? 0 : this.#failures + 1
    if (this.isAway === wasAway) return
    if (this.isAway) {
      logger.warn(
        { origin, reason: result },
        'the origin does not answer: viewers get 503, for cached streams after three target durations. ' +
          'Check EDGE_OF, and that the origin runs',
      )
    } else logger.info({ origin }, 'the origin answers again')
  }

  /** @returns `answered`, `unknown` at a limit of this process, or why the origin does not answer */
  async #ask(): Promise<string> {
    const { client, url } = this.#options
    const timeout = AbortSignal.timeout(TIMEOUT_SEC * 1000)
    try {
      const { status } = await client.get(url, { path: '/health/live', signal: timeout })
      // A proxy answers for an origin that is away. One with too many connections answers 503 itself.
      return status === 502 || status === 504 ? `answered ${status}` : 'answered'
    } catch (error) {
      if (isOwnLimit(error)) return 'unknown'
      if (timeout.aborted) return `no answer in ${TIMEOUT_SEC} s`
      const { code, message } = error as NodeJS.ErrnoException
      return code ?? message
    }
  }
}
