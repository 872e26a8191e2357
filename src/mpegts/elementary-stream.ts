/**
 * One elementary stream of the program: its open PES, its place in time, and what its bitstream said so far.
 *
 * @module
 */
import type { PesUnit } from './demuxer-output.ts'
import type { DemuxerStats } from './demuxer-stats.ts'
import { inspectUnit } from './inspect-unit.ts'
import { areSameParameters } from './layout.ts'
import { elementaryBytes, findPesHeader, type PesHeader } from './pes.ts'
import { PesAssembler } from './pes-assembler.ts'
import type { Times, Timeline } from './timeline.ts'
import type { Codec, Track } from './track.ts'

/** Feed `pes`; `takeUnit` when it is complete. */
export class ElementaryStream {
  readonly pes = new PesAssembler()
  readonly #timeline: Timeline
  readonly #stats: DemuxerStats
  /** Codec that the program map names; the bitstream may know better. */
  readonly #declaredCodec: Codec
  #track: Track
  #latest: Times | undefined

  /** @param track  as the program map describes it */
  constructor(track: Track, timeline: Timeline, stats: DemuxerStats) {
    this.#track = track
    this.#declaredCodec = track.codec
    this.#timeline = timeline
    this.#stats = stats
  }

  /** Another object whenever the map or the bitstream says something new. */
  get track(): Track {
    return this.#track
  }

  /** @returns whether a new description is of this same stream; what its bitstream said is kept then */
  goesOnAs(track: Track): boolean {
    if (track.streamType !== this.#track.streamType) return false
    if (track.codec !== this.#declaredCodec) return false
    this.#track = { ...track, codec: this.#track.codec, parameters: this.#track.parameters }
    return true
  }

  /** @returns the open PES as a unit; undefined where it has no header, or there is no time to give it */
  takeUnit(): PesUnit | undefined {
    const { chunks, sizeBytes, damaged } = this.pes.take()
    const header = findPesHeader(chunks)
    if (header === undefined) {
      this.#stats.malformedPes++
      return undefined
    }
    const times = this.#timesOf(header)
    if (times === undefined) return undefined
    const { randomAccess, codec, parameters } = inspectUnit(
      this.#track.codec,
      elementaryBytes(chunks, header.sizeBytes),
    )
    // What a damaged unit says of itself may be damage.
    if (
      !damaged &&
      parameters !== undefined &&
      !areSameParameters(parameters, this.#track.parameters)
    ) {
      this.#track = { ...this.#track, codec, parameters }
    }
    this.#stats.units++
    if (damaged) this.#stats.damagedUnits++
    return { track: this.#track, chunks, sizeBytes, ...times, randomAccess, damaged }
  }

  /**
   * A PES need not have a PTS: an access unit may span several, and metadata may have none at all. It takes the time of
   * the unit before it on its track, else the latest of the program.
   */
  #timesOf({ ptsTicks, dtsTicks = ptsTicks }: PesHeader): Times | undefined {
    if (ptsTicks === undefined || dtsTicks === undefined) {
      this.#stats.pesWithoutPts++
      return this.#latest ?? this.#timeline.latest
    }
    const times = this.#timeline.unwrap(ptsTicks, dtsTicks)
    this.#latest = times
    // Clocks of metadata are nothing to measure sound and picture by.
    if (this.#track.kind !== 'data') this.#timeline.advance(times)
    return times
  }
}
