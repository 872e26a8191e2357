/**
 * One elementary stream of the program: its open PES, its place in time, and what its bitstream said so far.
 *
 * @module
 */
import { LatmReader } from '../../codec/latm.ts'
import type { PesUnit } from '../pes-unit.ts'
import type { DemuxerStats } from './demuxer-stats.ts'
import { inspectUnit } from './inspect-unit.ts'
import { areSameParameters } from './layout.ts'
import { PACKET_BYTES } from '../packet.ts'
import { elementaryBytes, findPesHeader, type PesHeader } from '../pes.ts'
import { PesAssembler, type RawPes } from './pes-assembler.ts'
import { StreamType } from '../psi/stream-type.ts'
import { replacePesPayload } from '../mux/pes-packetizer.ts'
import type { Times, TimestampUnwrapper } from '../timestamps.ts'
import type { Codec, Track, TrackParameters } from '../track.ts'
import { VideoStream, type UnitContent } from './video-stream.ts'

/** Feed `pes`; `takeUnit` when it is complete. */
export class ElementaryStream {
  readonly pes = new PesAssembler()
  readonly #timestamps: TimestampUnwrapper
  readonly #stats: DemuxerStats
  readonly #video: VideoStream | undefined
  /** While LATM leaves as ADTS. */
  #latm: LatmReader | undefined
  /** As the program map describes it; the bitstream may know better. */
  #declared: Track
  #track: Track
  #latest: Times | undefined

  /** @param declared  as the program map describes it */
  constructor(declared: Track, timestamps: TimestampUnwrapper, stats: DemuxerStats) {
    const { codec } = declared
    this.#declared = declared
    this.#track = declared
    this.#timestamps = timestamps
    this.#stats = stats
    if (codec === 'h264' || codec === 'h265') this.#video = new VideoStream(codec)
    if (codec !== 'aac-latm') return
    // No player of HLS knows LATM. Called ADTS from the start, for a track that changes costs a discontinuity.
    this.#latm = new LatmReader()
    this.#track = { ...declared, codec: 'aac', streamType: StreamType.AAC_ADTS }
  }

  /** Another object whenever the map or the bitstream says something new. */
  get track(): Track {
    return this.#track
  }

  /** @returns whether a new description is of this same stream; what its bitstream said is kept then */
  goesOnAs(declared: Track): boolean {
    if (declared.streamType !== this.#declared.streamType) return false
    if (declared.codec !== this.#declared.codec) return false
    const { streamType, codec, parameters } = this.#track
    this.#declared = declared
    this.#track = { ...declared, streamType, codec, parameters }
    return true
  }

  /** @returns the open PES as a unit; undefined where it has no header, or there is no time to give it */
  takeUnit(): PesUnit | undefined {
    const pes = this.pes.take()
    const header = findPesHeader(pes.chunks)
    if (header === undefined) {
      this.#stats.malformedPes++
      return undefined
    }
    const times = this.#timesOf(header)
    if (times === undefined) return undefined
    const content =
      this.#latm === undefined
        ? this.#inspect(pes, header.sizeBytes)
        : this.#rewrap(this.#latm, pes, header.sizeBytes)
    if (content === undefined) return undefined
    this.#stats.units++
    if (content.damaged) this.#stats.damagedUnits++
    const addedBytes = content.sizeBytes - pes.sizeBytes
    if (addedBytes > 0) this.#stats.addedPackets += addedBytes / PACKET_BYTES
    return {
      track: this.#track,
      chunks: content.chunks,
      sizeBytes: content.sizeBytes,
      ptsTicks: times.ptsTicks,
      dtsTicks: times.dtsTicks,
      randomAccess: content.randomAccess,
      gradualRefresh: content.gradualRefresh,
      decodableLeading: content.decodableLeading,
      startsFrame: content.startsFrame,
      damaged: content.damaged,
    }
  }

  #inspect(pes: RawPes, headerBytes: number): UnitContent {
    const unit = elementaryBytes(pes.chunks, headerBytes)
    const { codec, parameters, picture } = inspectUnit(this.#track.codec, unit)
    if (picture !== undefined) {
      this.#stats.nalUnits += picture.nalUnits
      this.#stats.nalBytes += picture.nalBytes
    }
    // What a damaged unit says of itself may be damage.
    if (!pes.damaged) this.#learn(codec, parameters, picture?.closedCaptions)
    if (picture === undefined || this.#video === undefined)
      return withoutPicture(pes.chunks, pes.sizeBytes, pes.damaged)
    return this.#video.take(pes, headerBytes, picture)
  }

  #learn(codec: Codec, told: TrackParameters | undefined, captionsSeen = false): void {
    const known = this.#track.parameters
    const closedCaptions = captionsSeen || known?.closedCaptions === true
    const latest = told ?? known
    if (latest === undefined) return
    const parameters = closedCaptions ? { ...latest, closedCaptions } : latest
    if (areSameParameters(parameters, known)) return
    this.#track = { ...this.#track, codec, parameters }
  }

  /** @returns undefined for what is said before the configuration: nothing can be made of it */
  #rewrap(latm: LatmReader, pes: RawPes, headerBytes: number): UnitContent | undefined {
    if (pes.damaged) return withoutPicture(pes.chunks, pes.sizeBytes, pes.damaged)
    const reading = latm.read(Buffer.concat([...elementaryBytes(pes.chunks, headerBytes)]))
    if (reading.type === 'adts') {
      this.#learn('aac', reading.audio.parameters)
      const packets = replacePesPayload(pes.chunks, headerBytes, reading.bytes)
      return withoutPicture([packets], packets.length, false)
    }
    if (reading.type === 'unconfigured') {
      this.#stats.unconfiguredUnits++
      return undefined
    }
    // Frames that are not whole in a PES are of another make too; later on, such a unit is a broken one.
    if (reading.type === 'damaged' && this.#track.parameters !== undefined) {
      return withoutPicture(pes.chunks, pes.sizeBytes, true)
    }
    this.#latm = undefined
    this.#track = this.#declared
    return withoutPicture(pes.chunks, pes.sizeBytes, pes.damaged)
  }

  /**
   * A PES need not have a PTS: an access unit may span several, and metadata may have none at all. It takes the time of
   * the unit before it on its track, else the latest of the program.
   */
  #timesOf({ ptsTicks, dtsTicks = ptsTicks }: PesHeader): Times | undefined {
    if (ptsTicks === undefined || dtsTicks === undefined) {
      this.#stats.pesWithoutPts++
      return this.#latest ?? this.#timestamps.latest
    }
    const times = this.#timestamps.unwrap(ptsTicks, dtsTicks)
    this.#latest = times
    // Clocks of metadata are nothing to measure sound and picture by.
    if (this.#track.kind !== 'data') this.#timestamps.advance(times)
    return times
  }
}

/** Sound and data: one may start anywhere. Written out: spread objects cost a unit half as much again (bench/mpegts). */
function withoutPicture(
  chunks: readonly Buffer[],
  sizeBytes: number,
  damaged: boolean,
): UnitContent {
  return {
    chunks,
    sizeBytes,
    randomAccess: true,
    gradualRefresh: false,
    decodableLeading: false,
    startsFrame: true,
    damaged,
  }
}
