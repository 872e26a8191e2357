/**
 * Overload of ingest: the process reads datagrams more slowly than they arrive, and the kernel drops the others. Every
 * stream then loses packets, so new encoders are refused, and if that is not enough the newest are disconnected.
 *
 * @module
 */

/** Event loop utilization from which kernel drops count as overload; below it, they come from a short stall. */
const BUSY_UTILIZATION = 0.9

/** Consecutive seconds with a busy event loop and drops after which new encoders are refused. */
const REFUSE_AFTER_SEC = 2

/** Consecutive seconds with a busy event loop and drops after which the newest encoders are disconnected. */
const SHED_AFTER_SEC = 3

/** Interval of disconnections: in between, the remaining encoders can retransmit what was dropped before. */
const SHED_INTERVAL_SEC = 2

/** Share of the encoders that is disconnected at once. */
const SHED_SHARE = 1 / 8

/** Consecutive seconds without drops, and with a loop that is not busy, after which encoders are admitted again. */
const CALM_SEC = 5

export interface SecondOfIngest {
  /** Share of the second that the event loop worked, 0 to 1. */
  readonly utilization: number
  /** Datagrams that the kernel dropped in this second. */
  readonly drops: number
  /** Encoders that are connected. */
  readonly encoders: number
}

/** Input: `observe`, once a second. */
export class OverloadJudge {
  #overloaded = false
  #behindSec = 0
  #calmSec = 0

  /** Whether new encoders are to be refused. */
  get overloaded(): boolean {
    return this.#overloaded
  }

  /** @returns number of encoders to disconnect, the newest first; never all of them */
  observe({ utilization, drops, encoders }: SecondOfIngest): number {
    const busy = utilization >= BUSY_UTILIZATION
    this.#behindSec = busy && drops > 0 ? this.#behindSec + 1 : 0
    this.#calmSec = busy || drops > 0 ? 0 : this.#calmSec + 1
    if (this.#behindSec >= REFUSE_AFTER_SEC) this.#overloaded = true
    else if (this.#calmSec >= CALM_SEC) this.#overloaded = false
    const sinceShedding = this.#behindSec - SHED_AFTER_SEC
    if (sinceShedding < 0 || sinceShedding % SHED_INTERVAL_SEC !== 0) return 0
    return Math.min(Math.ceil(encoders * SHED_SHARE), Math.max(0, encoders - 1))
  }
}

export interface OverloadGuardOptions {
  /** @returns datagrams dropped since the start; undefined if the system has no such counter */
  readonly readKernelDrops: () => Promise<number | undefined>
  /** Number of encoders that are connected. */
  readonly countEncoders: () => number
  /** Disconnects the encoders that connected last. */
  readonly disconnectNewest: (count: number) => void
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** Guard that measures from its creation until `close`, and acts on what the judge says. */
export class OverloadGuard {
  readonly #options: OverloadGuardOptions
  readonly #judge = new OverloadJudge()
  readonly #ticker: NodeJS.Timeout
  #measured = performance.eventLoopUtilization()
  #drops: number | undefined

  constructor(options: OverloadGuardOptions) {
    this.#options = options
    this.#ticker = setInterval(() => void this.#measure(), 1000)
    this.#ticker.unref()
  }

  /** Whether new encoders are to be refused. */
  get overloaded(): boolean {
    return this.#judge.overloaded
  }

  close(): void {
    clearInterval(this.#ticker)
  }

  async #measure(): Promise<void> {
    const { readKernelDrops, countEncoders, disconnectNewest, onWarning } = this.#options
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, this.#measured)
    this.#measured = now
    const before = this.#drops
    this.#drops = (await readKernelDrops()) ?? 0
    const drops = this.#drops - (before ?? this.#drops)
    const encoders = countEncoders()
    const wasOverloaded = this.overloaded
    const count = this.#judge.observe({ utilization, drops, encoders })
    if (this.overloaded !== wasOverloaded) onWarning(wasOverloaded ? ADMITTING : refusing(drops))
    if (count === 0) return
    disconnectNewest(count)
    onWarning(disconnected(count, encoders, drops))
  }
}

const ADMITTING = 'The process reads all packets again: new encoders are admitted.'

function refusing(drops: number): string {
  return `The kernel dropped ${drops} SRT packets in 1 s, read too late: viewers see gaps. New encoders are refused (2402). Run fewer streams in this process.`
}

function disconnected(count: number, encoders: number, drops: number): string {
  return `Disconnected the ${count} newest of ${encoders} encoders: ${drops} packets dropped in 1 s. Their viewers wait, the others see no gaps. Run fewer here.`
}
