/**
 * One encoder's connection to a stream: its transport payloads, demuxed. A stream outlives its publications.
 *
 * @module
 */
import { Demuxer } from '../mpegts/demuxer.ts'
import type { DemuxerOutput } from '../mpegts/demuxer-output.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import { LinkHealth } from './link-health.ts'
import type { PublisherReport } from './report.ts'

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

/** Why an encoder is gone: it said so, fell silent, was replaced by another, or the stream stopped. */
export type LeaveReason = 'shutdown' | 'timeout' | 'replaced' | 'stopped'

/** What a publication tells its stream. */
export interface PublicationListener {
  outputs(outputs: readonly DemuxerOutput[]): void
  /** @param rest  what the encoder had begun */
  left(publication: Publication, reason: LeaveReason, rest: readonly DemuxerOutput[]): void
}

export interface PublicationOptions {
  readonly openedUs: number
  /** Which program to carry where the encoder does not say it; the first that has video unless told. */
  readonly program?: ProgramChoice | undefined
}

/** `push` and `gap` while it lasts, then `end` once; later calls do nothing. */
export class Publication {
  readonly encoder: Encoder
  readonly openedUs: number
  /** What is wrong with the way its payloads take; `LiveStream.tick` feeds it. */
  readonly link = new LinkHealth()
  readonly #demuxer: Demuxer
  readonly #listener: PublicationListener
  #ended = false

  constructor(encoder: Encoder, options: PublicationOptions, listener: PublicationListener) {
    this.encoder = encoder
    this.openedUs = options.openedUs
    this.#demuxer = new Demuxer({ program: encoder.program ?? options.program ?? 'first' })
    this.#listener = listener
  }

  /** Whether the encoder has said what it sends (PAT and PMT). */
  get hasProgram(): boolean {
    return this.#demuxer.program !== undefined
  }

  /** @param payload  the next bytes of the transport stream; kept until the PES unit they belong to is complete */
  push(payload: Buffer): void {
    if (!this.#ended) this.#listener.outputs(this.#demuxer.push(payload))
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
