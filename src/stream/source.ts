/**
 * A source of a stream: an encoder that is connected, or the slate. One of them is on air, the others are kept ready.
 *
 * @module
 */
import type { SourceName } from '../api/records.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import type { Encoder, Publication } from './publication.ts'
import { HotGop } from './hot-gop.ts'
import { PayloadLog } from './payload-log.ts'

/** Inputs: `handle` the outputs of its publication, `observe` whether it sends. */
export class Source {
  readonly name: SourceName
  readonly publication: Publication
  readonly gop = new HotGop()
  /** For the readers of the stream. */
  readonly log = new PayloadLog()
  /** Since when it has sent without a pause or damage; undefined while it sends nothing. */
  #cleanSinceUs: number | undefined

  constructor(name: SourceName, publication: Publication) {
    this.name = name
    this.publication = publication
  }

  get encoder(): Encoder {
    return this.publication.encoder
  }

  /** @param isOnAir  whether the outputs go to the packager: then no GOP is kept */
  handle(outputs: readonly DemuxerOutput[], wallMs: number, isOnAir: boolean): void {
    this.gop.push(outputs, wallMs, isOnAir)
    if (outputs.some((output) => output.type === 'unit' && output.unit.damaged))
      this.#cleanSinceUs = undefined
  }

  /** @returns whether it has sent a packet of media within `patienceUs`, and frames of late */
  observe(nowUs: number, patienceUs: number): boolean {
    const { encoder, silent } = this.publication
    const { lastPacketUs, lastDataUs = lastPacketUs } = encoder
    const isSending = nowUs - lastDataUs < patienceUs && !silent
    if (isSending) this.#cleanSinceUs ??= nowUs
    else this.#cleanSinceUs = undefined
    return isSending
  }

  /** Time for which it has sent without a pause or damage, in microseconds. */
  cleanUs(nowUs: number): number {
    return nowUs - (this.#cleanSinceUs ?? nowUs)
  }

  /** Disconnects the encoder. */
  dismiss(reason: Parameters<Publication['end']>[0]): void {
    this.publication.end(reason)
    this.encoder.close()
  }
}
