/**
 * Connection of one encoder to a stream, from payloads to demuxer outputs. A stream outlives its publications.
 *
 * @module
 */
import type { Clock } from '../timing/clock.ts'
import { Demuxer, type DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import { BitrateLimit } from './bitrate-limit.ts'
import { SourceMonitor } from '../diagnosis/source-monitor.ts'
import { LinkMonitor } from '../diagnosis/link-monitor.ts'
import { MediaWatch } from './media-watch.ts'
import type { EncoderSource, InterruptionReason, PublisherReport } from '../api/records.ts'
import type { PlaylistFigures } from '../diagnosis/shortage-watch.ts'
import type { WarningFact } from '../diagnosis/warnings.ts'
import type { Demuxed } from './payload-log.ts'
import { TrackBitrates } from './track-bitrates.ts'
import { GAP_US, PAYLOAD_US, workOfMedia, workOfStats, type WorkBudget } from './work-budget.ts'

/** An encoder that has connected. */
export interface ConnectedEncoder {
  /** Which of the stream's encoders it is; default: the main one. */
  readonly source?: EncoderSource
  /** Id of its stream key. */
  readonly keyId?: string
  /** Its connection, with counters since it was established. */
  report(): PublisherReport
}

/** Encoder of a publication, independent of its transport. */
export interface Encoder extends ConnectedEncoder {
  /** Program selected in the encoder's stream key. */
  readonly program?: ProgramChoice
  /** Expiry of the encoder's stream key, in milliseconds since 1970; undefined: it has none. */
  readonly keyExpiresAtMs?: number
  /** Time at which the encoder's latest packet arrived, in microseconds of `Clock.nowUs`. */
  readonly lastPacketUs: number
  /** The same for its latest packet of media; default: all of them are. */
  readonly lastDataUs?: number
  /** Size of the payloads that were received but not pushed; default 0. */
  readonly queuedBytes?: number
  /**
   * Date of the payload that was pushed last, in milliseconds since 1970; default: now. One that pushes in bursts has it: by the
   * time of the push, dates would move in steps.
   */
  readonly dateMs?: number
  /** Disconnects the encoder. Calls `Publication.end` before it returns, unless that was called before. */
  close(): void
}

/** Reason for the end of a publication: an interruption, another encoder, or the end of the stream. */
export type LeaveReason = Exclude<InterruptionReason, 'no-media'> | 'replaced' | 'stopped'

/** Receiver of a publication's outputs: its stream. */
interface PublicationListener {
  /** A payload has been demuxed; its outputs follow. */
  pushed(payload: Buffer, demuxed: Demuxed): void
  outputs(outputs: readonly DemuxerOutput[]): void
  /** @param rest  outputs for the PES packets that were open at the end */
  left(reason: LeaveReason, rest: readonly DemuxerOutput[]): void
}

interface PublicationOptions {
  readonly clock: Clock
  /** CPU budget of the media. */
  readonly budget: WorkBudget
  /** Minimum duration of a segment, which ends at the next key frame. */
  readonly segmentSec: number
  /** Program to carry if the encoder selects none; default: the first with video. */
  readonly program?: ProgramChoice | undefined
  /** Maximum payload rate, in bits per second; default: no limit. */
  readonly maxBitrateBps?: number
}

/**
 * Calling order: `push`, `gap` and `observe` while it lasts, then `end`; then `push`, `gap` and `end` do nothing.
 *
 * While the CPU budget is used up, payloads are dropped; to the demuxer they are lost packets.
 */
export class Publication {
  readonly encoder: Encoder
  readonly #link = new LinkMonitor()
  readonly #bitrate: BitrateLimit
  readonly #media = new MediaWatch()
  readonly #bitrates = new TrackBitrates()
  readonly #source: SourceMonitor
  readonly #clock: Clock
  readonly #demuxer: Demuxer
  readonly #budget: WorkBudget
  readonly #listener: PublicationListener
  /** Cost of the demuxer's counters that the budget has paid. */
  #countedUs = 0
  /** Payloads lost or dropped since the latest demuxed one. */
  #missing = 0
  #ended = false

  constructor(encoder: Encoder, options: PublicationOptions, listener: PublicationListener) {
    this.encoder = encoder
    const program = encoder.program ?? options.program ?? 'first'
    this.#bitrate = new BitrateLimit(options.maxBitrateBps ?? Infinity)
    this.#source = new SourceMonitor({ program, segmentSec: options.segmentSec })
    this.#clock = options.clock
    this.#demuxer = new Demuxer({ program })
    this.#budget = options.budget
    this.#listener = listener
  }

  /** Whether no usable media has arrived for 10 s or more, though the connection may be alive. */
  get silent(): boolean {
    return this.#media.silent
  }

  /** Size of the received media that the demuxer has not output yet. */
  get queuedBytes(): number {
    return (this.encoder.queuedBytes ?? 0) + this.#demuxer.openBytes
  }

  /** Counters of the demuxer. */
  get demuxed(): Readonly<DemuxerStats> {
    return this.#demuxer.stats
  }

  /** See `TrackBitrates.bps`. */
  get bitrates(): ReadonlyMap<number, number> {
    return this.#bitrates.bps
  }

  /** The fact that the bitrate exceeds the limit: the encoder is to be disconnected. Undefined within the limit. */
  get excess(): WarningFact | undefined {
    return this.#bitrate.excess
  }

  /**
   * Evaluates the counters; to be called 4 times a second.
   *
   * @returns facts about the connection and about the media that it carries
   */
  observe(playlist: PlaylistFigures, nowUs: number): readonly WarningFact[] {
    const report = this.encoder.report()
    this.#media.observe(nowUs)
    this.#bitrates.observe(nowUs)
    const { stats, program, programNumbers } = this.#demuxer
    const { packetsDropped = 0 } = report
    const figures = { stats, program, programNumbers, packetsDropped, ...playlist }
    return [
      ...this.#link.observe(report, nowUs),
      this.#bitrate.observe(report, nowUs),
      ...this.#source.observe(figures, nowUs),
    ]
  }

  /** @param payload  the next bytes of the transport stream; must not be changed afterwards */
  push(payload: Buffer): void {
    if (this.#ended) return
    if (!this.#budget.admit(payload.length, this.#clock.nowUs())) {
      this.#missing++
      return
    }
    this.#closeGap()
    const { packets: packetsBefore } = this.#demuxer.stats
    const outputs = this.#demuxer.push(payload)
    const countedUs = workOfStats(this.#demuxer.stats)
    let workUs = PAYLOAD_US + countedUs - this.#countedUs
    for (const output of outputs) {
      workUs += workOfMedia(output)
      this.#source.handle(output)
      this.#media.handle(output)
      this.#bitrates.handle(output)
    }
    this.#countedUs = countedUs
    this.#budget.spend(workUs)
    this.#listener.pushed(payload, { packetsBefore, outputs, program: this.#demuxer.program })
    if (outputs.length > 0) this.#listener.outputs(outputs)
  }

  /** Reports payloads lost before the next one. */
  gap(lostPackets: number): void {
    if (!this.#ended) this.#missing += lostPackets
  }

  /** Returns the open PES packets of an encoder that is silent: each would be complete with the next one. */
  takeOpen(): readonly DemuxerOutput[] {
    return this.#demuxer.end()
  }

  /** Ends the publication and outputs the open PES packets. */
  end(reason: LeaveReason): void {
    if (this.#ended) return
    this.#ended = true
    this.#closeGap()
    this.#listener.left(reason, this.#demuxer.end())
  }

  #closeGap(): void {
    if (this.#missing === 0) return
    this.#demuxer.gap(this.#missing)
    this.#budget.spend(GAP_US)
    this.#missing = 0
  }
}
