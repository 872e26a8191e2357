/**
 * One encoder's connection to a stream: its transport payloads, demuxed. A stream outlives its publications.
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

/** The far end of a publication, whatever carries it. */
export interface Encoder {
  /** Which program of its transport stream to carry, where its StreamID says so. */
  readonly program?: ProgramChoice
  /** Microseconds of `Clock.nowUs` when it was last heard. */
  readonly lastHeardUs: number
  report(): PublisherReport
  /** Disconnects it; calls `Publication.end` before it returns, if that was not called yet. */
  close(): void
}

/**
 * Why an encoder is gone: it said so, fell silent, was replaced by another, sent too much, made too much work, or the
 * stream stopped.
 */
export type LeaveReason =
  'shutdown' | 'timeout' | 'replaced' | 'bitrate-exceeded' | 'too-costly' | 'stopped'

/** What a publication tells its stream. */
export interface PublicationListener {
  outputs(outputs: readonly DemuxerOutput[]): void
  /** @param rest  what the encoder had begun */
  left(publication: Publication, reason: LeaveReason, rest: readonly DemuxerOutput[]): void
}

export interface PublicationOptions {
  readonly clock: Clock
  /** Pays for the work that the media makes. */
  readonly budget: WorkBudget
  /** A segment ends at the first key frame after this. */
  readonly segmentSec: number
  /** Which program to carry where the encoder does not say it; the first that has video unless told. */
  readonly program?: ProgramChoice | undefined
  /** Payload that it may send, in bits a second; any unless told. */
  readonly maxBitrateBps?: number
}

/** `push`, `gap` and `observe` while it lasts, then `end` once; later calls do nothing. */
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

  /** No media for 10 s, though the connection may stand. */
  get silent(): boolean {
    return this.#media.silent
  }

  /** It sends more than it may: to be disconnected, for this reason. */
  get excess(): Fact | undefined {
    return this.#bitrate.excess
  }

  /**
   * Looks at what was counted, 4 times a second.
   *
   * @returns facts about the connection and about the media that it carries
   */
  observe(playlist: PlaylistFigures, nowUs: number): readonly Fact[] {
    const report = this.encoder.report()
    this.#media.observe(nowUs)
    const { stats, program, programNumbers } = this.#demuxer
    const { packetsDropped } = report
    const figures = { stats, program, programNumbers, packetsDropped, ...playlist }
    return [
      ...this.#link.observe(report, nowUs),
      this.#bitrate.observe(report, nowUs),
      ...this.#source.observe(figures, nowUs),
    ]
  }

  /** @param payload  the next bytes of the transport stream; kept until the PES unit they belong to is complete */
  push(payload: Buffer): void {
    if (this.#ended) return
    const outputs = this.#demuxer.push(payload, this.#clock.nowUs())
    for (const output of outputs) {
      this.#source.handle(output)
      this.#media.handle(output)
    }
    this.#listener.outputs(outputs)
  }

  /** This many transport payloads were lost before the next one. */
  gap(lostPackets: number): void {
    if (!this.#ended) this.#demuxer.gap(lostPackets)
  }

  /** The encoder is gone; what it had begun is flushed, not lost. */
  end(reason: LeaveReason): void {
    if (this.#ended) return
    this.#ended = true
    this.#listener.left(this, reason, this.#demuxer.end())
  }
}
