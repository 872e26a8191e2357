/**
 * Overload of ingest: the process reads datagrams more slowly than they arrive, and the kernel drops the rest. Every
 * stream then loses packets, so new encoders are refused and, if that is not enough, the newest are disconnected.
 *
 * @module
 */
import type { ListenerStats } from '../srt/stats.ts'

/** Event loop utilization from which kernel drops count as overload; below it, they come from a short stall. */
const BUSY_UTILIZATION = 0.9

/** Share of the arriving datagrams above which drops count as overload; SRT repairs smaller losses. */
const MIN_DROPPED_SHARE = 0.01

/**
 * Minimum share of the datagrams read that belongs to connections. Below it, the process is flooded with foreign
 * datagrams, and disconnecting encoders would only help the attacker.
 */
const MIN_CONNECTION_SHARE = 0.9

/** Consecutive seconds of overload after which new encoders are refused. */
const REFUSE_AFTER_SEC = 2

/** Consecutive seconds of overload after which the newest encoders are disconnected. */
const SHED_AFTER_SEC = 3

/** Seconds between disconnections, in which the remaining encoders can retransmit the dropped packets. */
const SHED_INTERVAL_SEC = 2

/** Share of the encoders to disconnect at once, rounded up. */
const SHED_SHARE = 1 / 8

/** Minimum relative decrease of drops after a disconnection. With less, encoders are not the cause: none follows. */
const MIN_RELIEF = 0.05

/** Consecutive seconds with few drops and an event loop that is not busy, after which new encoders are admitted. */
const CALM_SEC = 5

export interface SecondOfIngest {
  /** Share of this second in which the event loop was busy, 0 to 1. */
  readonly utilization: number
  /** Datagrams that the kernel dropped in this second. */
  readonly drops: number
  /** Datagrams read in this second. */
  readonly datagrams: number
  /** Datagrams read in this second that belong to connections. */
  readonly connectionDatagrams: number
  /** Number of connected encoders. */
  readonly encoders: number
}

/** Input: `observe`, once a second. */
export class OverloadJudge {
  #overloaded = false
  #behindSec = 0
  #calmSec = 0
  /** Drops before the latest disconnection of this overload; Infinity before the first, 0 after one without effect. */
  #dropsAtShedding = Infinity

  /** Whether new encoders are to be refused. */
  get overloaded(): boolean {
    return this.#overloaded
  }

  /** @returns number of encoders to disconnect, the newest first; never all of them */
  observe(second: SecondOfIngest): number {
    const { utilization, drops, datagrams, connectionDatagrams, encoders } = second
    const busy = utilization >= BUSY_UTILIZATION
    const dropping = drops > (drops + datagrams) * MIN_DROPPED_SHARE
    const behind = busy && dropping && connectionDatagrams >= datagrams * MIN_CONNECTION_SHARE
    this.#behindSec = behind ? this.#behindSec + 1 : 0
    this.#calmSec = busy || dropping ? 0 : this.#calmSec + 1
    if (this.#behindSec >= REFUSE_AFTER_SEC) this.#overloaded = true
    else if (this.#calmSec >= CALM_SEC) this.#overloaded = false
    if (!behind) this.#dropsAtShedding = Infinity
    const sinceShedding = this.#behindSec - SHED_AFTER_SEC
    if (sinceShedding < 0 || sinceShedding % SHED_INTERVAL_SEC !== 0) return 0
    const relieved = drops <= this.#dropsAtShedding * (1 - MIN_RELIEF)
    this.#dropsAtShedding = relieved ? drops : 0
    return relieved ? Math.min(Math.ceil(encoders * SHED_SHARE), Math.max(0, encoders - 1)) : 0
  }
}

export interface OverloadGuardOptions {
  /** @returns datagrams dropped since the SRT sockets were opened; undefined if the system has no such counter */
  readonly readKernelDrops: () => Promise<number | undefined>
  readonly readStats: () => Pick<ListenerStats, 'datagrams' | 'connectionDatagrams'>
  /** @returns number of connected encoders */
  readonly countEncoders: () => number
  /** Disconnects the encoders that connected last. */
  readonly disconnectNewest: (count: number) => void
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** Counts since the SRT listener was created. */
type Totals = Pick<SecondOfIngest, 'drops' | 'datagrams' | 'connectionDatagrams'>

/** Measures once a second while there are encoders or overload, until `close`; applies the decisions of the judge. */
export class OverloadGuard {
  readonly #options: OverloadGuardOptions
  readonly #judge = new OverloadJudge()
  readonly #ticker: NodeJS.Timeout
  #loop = performance.eventLoopUtilization()
  #totals: Totals | undefined
  #measuring = false

  constructor(options: OverloadGuardOptions) {
    this.#options = options
    this.#ticker = setInterval(() => void this.#tick(), 1000)
    this.#ticker.unref()
  }

  /** Whether new encoders are to be refused. */
  get overloaded(): boolean {
    return this.#judge.overloaded
  }

  close(): void {
    clearInterval(this.#ticker)
  }

  async #tick(): Promise<void> {
    const isIdle = this.#options.countEncoders() === 0 && !this.overloaded
    if (isIdle || this.#measuring) return
    this.#measuring = true
    await this.#measure()
    this.#measuring = false
  }

  async #measure(): Promise<void> {
    const { readKernelDrops, readStats, countEncoders, disconnectNewest, onWarning } = this.#options
    const loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(loop, this.#loop)
    this.#loop = loop
    const { datagrams, connectionDatagrams } = readStats()
    const drops = (await readKernelDrops()) ?? this.#totals?.drops ?? 0
    const totals = { drops, datagrams, connectionDatagrams }
    const before = this.#totals ?? totals
    this.#totals = totals
    const second: SecondOfIngest = {
      utilization,
      drops: drops - before.drops,
      datagrams: datagrams - before.datagrams,
      connectionDatagrams: connectionDatagrams - before.connectionDatagrams,
      encoders: countEncoders(),
    }
    const wasOverloaded = this.overloaded
    const count = this.#judge.observe(second)
    if (this.overloaded !== wasOverloaded) onWarning(wasOverloaded ? ADMITTING : refusing(second))
    if (count === 0) return
    disconnectNewest(count)
    onWarning(disconnected(count, second))
  }
}

const ADMITTING = 'The process reads all SRT packets in time again: new encoders are admitted.'

function refusing({ drops }: SecondOfIngest): string {
  return `The kernel dropped ${drops} SRT packets in 1 s, read too late: viewers see gaps. New encoders are refused (2402). Run fewer streams in this process.`
}

function disconnected(count: number, { drops, encoders }: SecondOfIngest): string {
  return `Disconnected the ${count} newest of ${encoders} encoders, since ${drops} SRT packets were dropped in 1 s. Their viewers wait. Run fewer streams in this process.`
}
