/**
 * Connection of one encoder to a stream, from payloads to demuxer outputs. A stream outlives its publications.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import { BitrateLimit } from './bitrate-limit.ts'
import { SourceMonitor } from '../diagnosis/source-monitor.ts'
import { LinkMonitor } from '../diagnosis/link-monitor.ts'
import { MediaWatch } from './media-watch.ts'
import { MeteredDemuxer } from './metered-demuxer.ts'
import type { PublisherReport } from '../contract/report.ts'
import type { PlaylistFigures } from '../diagnosis/shortage-watch.ts'
import type { Fact } from '../diagnosis/warnings.ts'
import type { WorkBudget } from './work-budget.ts'

/** Encoder of a publication, independent of its transport. */
export interface Encoder {
  /** Program selected in the encoder's stream key. */
  readonly program?: ProgramChoice
  /** Time at which the encoder's latest packet arrived, in microseconds of `Clock.nowUs`. */
  readonly lastPacketUs: number
  /** Size of the payloads that were received but not pushed; default 0. */
  readonly queuedBytes?: number
  report(): PublisherReport
  /** Disconnects the encoder. Calls `Publication.end` before it returns, unless that was called before. */
  close(): void
}

/**
 * Reason for the end of a publication: SHUTDOWN by the encoder, idle timeout, another encoder, bitrate over the limit,
 * CPU cost over the limit, overload of the process, the operator, a drain of the node, or end of the stream.
 */
export type LeaveReason =
  | 'shutdown'
  | 'timeout'
  | 'replaced'
  | 'bitrate-exceeded'
  | 'too-costly'
  | 'overloaded'
  | 'kicked'
  | 'draining'
  | 'stopped'

/** Receiver of a publication's outputs: its stream. */
export interface PublicationListener {
  outputs(outputs: readonly DemuxerOutput[]): void
  /** @param rest  outputs for the PES packets that were open at the end */
  left(publication: Publication, reason: LeaveReason, rest: readonly DemuxerOutput[]): void
}

export interface PublicationOptions {
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

/** Calling order: `push`, `gap` and `observe` while it lasts, then `end`; then `push`, `gap` and `end` do nothing. */
export class Publication {
  readonly encoder: Encoder
  readonly #link = new LinkMonitor()
  readonly #bitrate: BitrateLimit
  readonly #media = new MediaWatch()
  readonly #source: SourceMonitor
  readonly #clock: Clock
  readonly #demuxer: MeteredDemuxer
  readonly #listener: PublicationListener
  #ended = false

  constructor(encoder: Encoder, options: PublicationOptions, listener: PublicationListener) {
    this.encoder = encoder
    const program = encoder.program ?? options.program ?? 'first'
    this.#bitrate = new BitrateLimit(options.maxBitrateBps ?? Infinity)
    this.#source = new SourceMonitor({ program, segmentSec: options.segmentSec })
    this.#clock = options.clock
    this.#demuxer = new MeteredDemuxer(program, options.budget)
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

  /** Fact that the bitrate exceeds the limit: the encoder is to be disconnected. Undefined within the limit. */
  get excess(): Fact | undefined {
    return this.#bitrate.excess
  }

  /**
   * Evaluates the counters; to be called 4 times a second.
   *
   * @returns facts about the connection and about the media that it carries
   */
  observe(playlist: PlaylistFigures, nowUs: number): readonly Fact[] {
    const report = this.encoder.report()
    this.#media.observe(nowUs)
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
    const outputs = this.#demuxer.push(payload, this.#clock.nowUs())
    if (outputs.length === 0) return
    for (const output of outputs) {
      this.#source.handle(output)
      this.#media.handle(output)
    }
    this.#listener.outputs(outputs)
  }

  /** Reports payloads lost before the next one. */
  gap(lostPackets: number): void {
    if (!this.#ended) this.#demuxer.gap(lostPackets)
  }

  /** Ends the publication and outputs the open PES packets. */
  end(reason: LeaveReason): void {
    if (this.#ended) return
    this.#ended = true
    this.#listener.left(this, reason, this.#demuxer.end())
  }
}
