/**
 * Overload of ingest: the process reads datagrams more slowly than they arrive, and the kernel drops the rest. Every
 * stream then loses packets, so readers are disconnected, and new encoders refused. If that is not enough, encoders are disconnected: those that
 * send far more than before, and if there are none, the newest.
 *
 * @module
 */
import type { ListenerStats } from '../srt/stats.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { UsualRates, type Surge } from './usual-rates.ts'

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

/** Consecutive seconds of overload after which surging encoders are disconnected. */
const SHED_SURGES_AFTER_SEC = 2

/** Consecutive seconds of overload after which the newest encoders are disconnected, if none surges. */
const SHED_NEWEST_AFTER_SEC = 3

/** Seconds between disconnections, in which the remaining encoders can retransmit the dropped packets. */
const SHED_INTERVAL_SEC = 2

/** Maximum share of the encoders to disconnect at once, rounded up. */
const SHED_SHARE = 1 / 8

/**
 * Minimum relative decrease of drops after a disconnection. With less, encoders may not be the cause: the next one takes
 * twice as long each time.
 */
const MIN_RELIEF = 0.05

/** Consecutive seconds with few drops and an event loop that is not busy, after which new encoders are admitted. */
const CALM_SEC = 5

interface SecondOfIngest {
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
  /** Number of encoders among them that send far more than before. */
  readonly surges: number
}

/** Input: `observe`, once a second. */
export class OverloadJudge {
  #overloaded = false
  #behindSec = 0
  #calmSec = 0
  /** Value of `#behindSec` at the latest disconnection of this overload. */
  #shedAtSec = -Infinity
  /** Drops before the latest disconnection of this overload. */
  #dropsAtShedding = 0
  /** Seconds from the latest disconnection to the next. */
  #intervalSec = SHED_INTERVAL_SEC
  /** Value of `#intervalSec` after the latest disconnection of this overload without relief. */
  #patienceSec = SHED_INTERVAL_SEC

  /** Whether new encoders are to be refused. */
  get overloaded(): boolean {
    return this.#overloaded
  }

  /** Whether the process was behind in the last second. */
  get behind(): boolean {
    return this.#behindSec > 0
  }

  /** @returns number of encoders to disconnect: the surging ones, else the newest; never all of them */
  observe(second: SecondOfIngest): number {
    const { utilization, drops, datagrams, connectionDatagrams, encoders, surges } = second
    const busy = utilization >= BUSY_UTILIZATION
    const dropping = drops > (drops + datagrams) * MIN_DROPPED_SHARE
    const behind = busy && dropping && connectionDatagrams >= datagrams * MIN_CONNECTION_SHARE
    this.#behindSec = behind ? this.#behindSec + 1 : 0
    this.#calmSec = busy || dropping ? 0 : this.#calmSec + 1
    if (this.#behindSec >= REFUSE_AFTER_SEC) this.#overloaded = true
    else if (this.#calmSec >= CALM_SEC) this.#overloaded = false
    if (!behind) {
      this.#shedAtSec = -Infinity
      this.#intervalSec = SHED_INTERVAL_SEC
      this.#patienceSec = SHED_INTERVAL_SEC
      return 0
    }
    const shedAfterSec = surges > 0 ? SHED_SURGES_AFTER_SEC : SHED_NEWEST_AFTER_SEC
    const sinceSec = this.#behindSec - this.#shedAtSec
    if (sinceSec === SHED_INTERVAL_SEC) this.#judgeRelief(drops)
    if (this.#behindSec < shedAfterSec || sinceSec < this.#intervalSec) return 0
    this.#shedAtSec = this.#behindSec
    this.#dropsAtShedding = drops
    const share = Math.min(Math.ceil(encoders * SHED_SHARE), Math.max(0, encoders - 1))
    return surges > 0 ? Math.min(surges, share) : share
  }

  /** Once for each disconnection, since drops vary by themselves. */
  #judgeRelief(drops: number): void {
    const isRelieved = drops <= this.#dropsAtShedding * (1 - MIN_RELIEF)
    if (!isRelieved) this.#patienceSec *= 2
    this.#intervalSec = isRelieved ? SHED_INTERVAL_SEC : this.#patienceSec
  }
}

interface OverloadGuardOptions {
  /** @returns datagrams dropped since the SRT sockets were opened; undefined if the system has no such counter */
  readonly readKernelDrops: () => Promise<number | undefined>
  readonly readStats: () => Pick<ListenerStats, 'datagrams' | 'connectionDatagrams'>
  /** @returns streams with an encoder, the one that connected last at the end */
  readonly listPublished: () => readonly LiveStream[]
  /** Disconnects all readers over SRT. @returns their number */
  readonly closeReaders: () => number
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** Counts since the SRT listener was created. */
type Totals = Pick<SecondOfIngest, 'drops' | 'datagrams' | 'connectionDatagrams'>

/** Measures once a second while there are encoders or overload, until `close`; applies the decisions of the judge. */
export class OverloadGuard {
  readonly #options: OverloadGuardOptions
  readonly #judge = new OverloadJudge()
  readonly #rates = new UsualRates<LiveStream>()
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
    const isIdle = this.#options.listPublished().length === 0 && !this.overloaded
    if (isIdle || this.#measuring) return
    this.#measuring = true
    try {
      await this.#measure()
    } finally {
      this.#measuring = false
    }
  }

  async #measure(): Promise<void> {
    const { readKernelDrops, readStats, listPublished, closeReaders, onWarning } = this.#options
    const loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(loop, this.#loop)
    this.#loop = loop
    const { datagrams, connectionDatagrams } = readStats()
    const drops = (await readKernelDrops()) ?? this.#totals?.drops ?? 0
    const totals = { drops, datagrams, connectionDatagrams }
    const before = this.#totals ?? totals
    this.#totals = totals
    const streams = listPublished()
    const rates = new Map(streams.map((each) => [each, each.encoder?.report().bitrateBps ?? 0]))
    const surges = this.#rates.findSurges(rates)
    const second: SecondOfIngest = {
      utilization,
      drops: drops - before.drops,
      datagrams: datagrams - before.datagrams,
      connectionDatagrams: connectionDatagrams - before.connectionDatagrams,
      encoders: streams.length,
      surges: surges.length,
    }
    const wasOverloaded = this.overloaded
    const count = this.#judge.observe(second)
    if (!this.#judge.behind) this.#rates.learn(rates)
    if (this.overloaded !== wasOverloaded) {
      const readers = wasOverloaded ? 0 : closeReaders()
      onWarning(wasOverloaded ? ADMITTING : refusing(second, readers))
    }
    if (count === 0) return
    const shed = surges.slice(0, count)
    const culprits = shed.length > 0 ? shed.map(({ source }) => source) : streams.slice(-count)
    for (const stream of culprits) stream.disconnect('overloaded')
    onWarning(
      shed.length > 0 ? disconnectedSurges(shed, second) : disconnectedNewest(count, second),
    )
  }
}

const ADMITTING = 'The process reads all SRT packets in time again: new encoders are admitted.'

function refusing({ drops }: SecondOfIngest, readers: number): string {
  const closed = readers === 0 ? '' : ` ${readers} SRT readers are disconnected.`
  return `The kernel dropped ${drops} SRT packets in 1 s, read too late: viewers see gaps.${closed} New encoders are refused (2402). Run fewer streams in this process.`
}

function disconnectedNewest(count: number, { drops, encoders }: SecondOfIngest): string {
  return `Disconnected the ${count} newest of ${encoders} encoders, since ${drops} SRT packets were dropped in 1 s. Their viewers wait. Run fewer streams in this process.`
}

function disconnectedSurges(
  surges: readonly Surge<LiveStream>[],
  { drops, encoders }: SecondOfIngest,
): string {
  const sum = (key: 'bitsPerSecond' | 'usual') =>
    mbps(surges.reduce((total, surge) => total + surge[key], 0))
  return `Disconnected ${surges.length} of ${encoders} encoders, at ${sum('bitsPerSecond')} Mbit/s instead of ${sum('usual')}, since ${drops} SRT packets were dropped in 1 s. Limit their bitrate.`
}

function mbps(bitsPerSecond: number): string {
  return (bitsPerSecond / 1e6).toFixed(1)
}
