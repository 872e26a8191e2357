/**
 * One elementary stream of the program: its open PES packet, its time, and the parameters of its bitstream.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import { AdtsChannels } from '../../codec/adts-channels.ts'
import { AUDIO_DECODERS } from '../../codec/audio-decoders.ts'
import { LatmReader } from '../../codec/latm.ts'
import type { PesUnit } from '../pes-unit.ts'
import { AdtsAlignment } from './adts-alignment.ts'
import { AudioFrameClock } from './audio-frame-clock.ts'
import type { DemuxerStats } from './demuxer-stats.ts'
import { inspectUnit } from './inspect-unit.ts'
import { areSameParameters, type Codec, type Track, type TrackParameters } from '../track.ts'
import { PACKET_BYTES } from '../packet.ts'
import { decodePesHeader, pesBytes, PES_PREFIX_BYTES, type PesHeader } from '../pes.ts'
import { type FramePes, FrameSplitter, type VideoPes } from './frame-splitter.ts'
import { PesAssembler } from './pes-assembler.ts'
import { StreamType } from '../psi/stream-type.ts'
import { insertPts, replacePesPayload } from '../mux/pes-packetizer.ts'
import type { Times, TimestampUnwrapper } from '../timestamps.ts'
import { VideoStream, type UnitContent } from './video-stream.ts'

/** Calling order: transport packets into `pes`, then `takeUnits` when its PES packet is complete. */
export class ElementaryStream {
  readonly pes = new PesAssembler()
  /** Highest DTS of audio when the latest packet of the open PES packet came. */
  besideTicks = -Infinity
  readonly #timestamps: TimestampUnwrapper
  readonly #stats: DemuxerStats
  readonly #video: VideoStream | undefined
  readonly #splitter: FrameSplitter | undefined
  readonly #adts: AdtsAlignment | undefined
  readonly #audioClock: AudioFrameClock
  /** Channels of AAC whose headers do not tell them; undefined until there was such a header. */
  #adtsChannels: AdtsChannels | undefined
  /** Converter from LATM to ADTS; undefined for a stream that is not converted. */
  #latm: LatmReader | undefined
  /** Track according to the program map alone. */
  #declared: Track
  #track: Track
  #latest: Times | undefined

  /** @param declared  the track according to the program map */
  constructor(declared: Track, timestamps: TimestampUnwrapper, stats: DemuxerStats) {
    const { codec } = declared
    this.#declared = declared
    this.#track = declared
    this.#timestamps = timestamps
    this.#stats = stats
    if (codec === 'h264' || codec === 'h265') {
      this.#video = new VideoStream(codec)
      this.#splitter = new FrameSplitter(codec, stats)
    }
    if (codec === 'aac') this.#adts = new AdtsAlignment(stats)
    this.#audioClock = new AudioFrameClock(stats)
    if (codec !== 'aac-latm') return
    // No HLS player decodes LATM. The track is ADTS from the start: a later change would cost a discontinuity.
    this.#latm = new LatmReader()
    this.#track = { ...declared, codec: 'aac', streamType: StreamType.AAC_ADTS }
  }

  /** Current description; a new object after each change in the program map or the bitstream. */
  get track(): Track {
    return this.#track
  }

  /**
   * Takes over a new entry of the program map if its stream type and codec are the same. The bitstream parameters
   * remain known.
   *
   * @returns whether they are the same
   */
  continueAs(declared: Track): boolean {
    if (declared.streamType !== this.#declared.streamType) return false
    if (declared.codec !== this.#declared.codec) return false
    const { streamType, codec, parameters } = this.#track
    this.#declared = declared
    this.#track = { ...declared, streamType, codec, parameters }
    return true
  }

  /**
   * Reads the times of a video PES packet that begins.
   *
   * @param payload  of its first transport packet
   * @returns undefined for audio and data, and for a header that is incomplete or has no PTS
   */
  readTimes(payload: Buffer): Times | undefined {
    // Frames that are cut anew have times of their own.
    if (this.#splitter?.splits !== false) return undefined
    const { ptsTicks, dtsTicks = ptsTicks } = decodePesHeader(payload) ?? {}
    if (ptsTicks === undefined || dtsTicks === undefined) return undefined
    return this.#timestamps.unwrap(ptsTicks, dtsTicks)
  }

  /**
   * Closes the open PES packet.
   *
   * @returns the PES packet with its times and content, or those made of the frames that end in it; none when its header
   *   does not parse, no time is known for it, or no StreamMuxConfig has arrived for its LATM. `track` may change with each.
   */
  *takeUnits(): Generator<PesUnit, void, undefined> {
    const { chunks, sizeBytes, damaged, afterLoss, packetNumber } = this.pes.take()
    const bytes = pesBytes(chunks)
    const header = decodePesHeader(bytes)
    if (header === undefined) {
      this.#stats.malformedPes++
      return
    }
    const times = this.#timesOf(header)
    const { sizeBytes: headerBytes } = header
    const payload = bytes.subarray(headerBytes)
    const pes = { chunks, sizeBytes, damaged, afterLoss, packetNumber, headerBytes, payload }
    const stamp = header.ptsTicks === undefined ? undefined : times
    // Padding, for one, is no part of the elementary stream.
    const hasHeader = headerBytes > PES_PREFIX_BYTES
    const frames = hasHeader
      ? this.#splitter?.push(pes, stamp, this.#track.parameters?.frameRate)
      : undefined
    if (frames !== undefined) yield* this.#makeUnits(frames)
    else if (times === undefined) this.#stats.pesWithoutPts++
    else {
      const sent = { pes, times, isStamped: stamp !== undefined }
      const timed = this.#adts === undefined ? sent : this.#adts.push(sent)
      if (timed === undefined) return
      const { isStamped } = timed
      const unit = this.#makeUnit(timed.pes, timed.times, this.#splitter?.startsFrame, isStamped)
      if (unit !== undefined) yield unit
    }
  }

  /** @returns what is left of the stream at its end */
  *flushUnits(): Generator<PesUnit, void, undefined> {
    yield* this.#makeUnits(this.#splitter?.flush() ?? [])
  }

  *#makeUnits(frames: readonly FramePes[]): Generator<PesUnit, void, undefined> {
    for (const { pes, times, startsFrame } of frames) {
      const unit = this.#makeUnit(pes, times, startsFrame)
      if (unit !== undefined) yield unit
    }
  }

  #makeUnit(
    pes: VideoPes,
    times: Times,
    startsFrame = true,
    isStamped = true,
  ): PesUnit | undefined {
    const content =
      this.#latm === undefined ? this.#inspect(pes, startsFrame) : this.#convert(this.#latm, pes)
    if (content === undefined) return undefined
    this.#stats.units++
    if (content.damaged) this.#stats.damagedUnits++
    const decode = AUDIO_DECODERS[this.#track.codec]
    const isCounted = decode !== undefined && pes.headerBytes > PES_PREFIX_BYTES
    const stampTicks = isStamped ? times.ptsTicks : undefined
    const ticks = isCounted ? this.#audioClock.push(content.payload, decode, stampTicks) : undefined
    let { chunks, sizeBytes } = content
    let { ptsTicks, dtsTicks } = times
    if (!isStamped && ticks === undefined) this.#stats.pesWithoutPts++
    else if (!isStamped && ticks !== undefined) {
      // hls.js drops AAC without a PTS.
      chunks = insertPts(chunks, ticks)
      sizeBytes = totalBytes(chunks)
      ptsTicks = dtsTicks = ticks
      this.#latest = { ptsTicks, dtsTicks }
    }
    const addedBytes = sizeBytes - pes.sizeBytes
    if (addedBytes > 0) this.#stats.addedPackets += addedBytes / PACKET_BYTES
    return {
      track: this.#track,
      chunks,
      sizeBytes,
      payload: content.payload,
      ptsTicks,
      dtsTicks,
      randomAccess: content.randomAccess,
      newParameters: content.newParameters,
      inBandSets: content.inBandSets,
      gradualRefresh: content.gradualRefresh,
      decodableLeading: content.decodableLeading,
      startsFrame: content.startsFrame,
      damaged: content.damaged,
      parameterSets: content.parameterSets,
      packetNumber: pes.packetNumber,
    }
  }

  #inspect(raw: VideoPes, startsFrame: boolean): UnitContent {
    const found = inspectUnit(this.#track.codec, raw.payload)
    const { codec, accessUnit, triedHeaders } = found
    const pes = codec === 'aac' ? this.#tellChannels(raw, found.parameters) : raw
    const isChanged = pes !== raw
    const { parameters } = isChanged ? inspectUnit(codec, pes.payload) : found
    if (accessUnit !== undefined) {
      this.#stats.nalUnits += accessUnit.nalUnits
      this.#stats.nalBytes += accessUnit.nalBytes
    }
    if (triedHeaders !== undefined) this.#stats.triedHeaders += triedHeaders
    // Parameters of a damaged PES packet may be corrupt.
    if (!pes.damaged) this.#learn(codec, parameters, accessUnit?.closedCaptions)
    if (accessUnit === undefined || this.#video === undefined) return withoutVideo(pes)
    return this.#video.push(pes, accessUnit, startsFrame)
  }

  /** @returns AAC with its channels in its headers, where a program_config_element has told them */
  #tellChannels(pes: VideoPes, parameters: TrackParameters | undefined): VideoPes {
    if (parameters !== undefined && parameters.channels === undefined)
      this.#adtsChannels ??= new AdtsChannels(this.#stats)
    if (pes.damaged || pes.afterLoss) this.#adtsChannels?.restart()
    // Padding is no part of the elementary stream.
    const isPadding = pes.headerBytes <= PES_PREFIX_BYTES
    if (this.#adtsChannels === undefined || pes.damaged || isPadding) return pes
    const payload = this.#adtsChannels.push(pes.payload)
    if (payload === pes.payload) return pes
    const packets = replacePesPayload(pes.chunks, pes.headerBytes, payload)
    return { ...pes, chunks: [packets], sizeBytes: packets.length, payload }
  }

  #learn(codec: Codec, found: TrackParameters | undefined, captionsSeen = false): void {
    const known = this.#track.parameters
    const closedCaptions = captionsSeen || known?.closedCaptions === true
    const latest = found ?? known
    if (latest === undefined) return
    const parameters = closedCaptions ? { ...latest, closedCaptions } : latest
    if (areSameParameters(parameters, known)) return
    this.#track = { ...this.#track, codec, parameters }
  }

  /** Converts LATM to ADTS. @returns undefined before the first StreamMuxConfig, which decoding requires */
  #convert(latm: LatmReader, pes: VideoPes): UnitContent | undefined {
    if (pes.damaged) return withoutVideo(pes)
    const framesBefore = latm.frames
    const reading = latm.push(pes.payload)
    this.#stats.latmFrames += latm.frames - framesBefore
    if (reading.type === 'adts') {
      this.#learn('aac', reading.audio.parameters)
      const packets = replacePesPayload(pes.chunks, pes.headerBytes, reading.bytes)
      const made = { chunks: [packets], sizeBytes: packets.length, payload: reading.bytes }
      return withoutVideo({ ...pes, ...made })
    }
    if (reading.type === 'unconfigured') {
      this.#stats.unconfiguredUnits++
      return undefined
    }
    // Before the first conversion, `damaged` means that frames span PES packets, which cannot be converted.
    if (reading.type === 'damaged' && this.#track.parameters !== undefined) {
      return withoutVideo({ ...pes, damaged: true })
    }
    this.#latm = undefined
    this.#track = this.#declared
    return withoutVideo(pes)
  }

  /**
   * Times of a PES packet. Without a PTS they are, as long as nothing is counted, the latest times of the track or, before the
   * track has any, the latest times of the program.
   */
  #timesOf({ ptsTicks, dtsTicks = ptsTicks }: PesHeader): Times | undefined {
    if (ptsTicks === undefined || dtsTicks === undefined) {
      return this.#latest ?? this.#timestamps.latest
    }
    const times = this.#timestamps.unwrap(ptsTicks, dtsTicks)
    this.#latest = times
    // Metadata may run on a clock of its own: audio and video are not unwrapped against it.
    if (this.#track.kind !== 'data') this.#timestamps.advance(times)
    return times
  }
}

/**
 * Content of an audio or data PES packet, at which a decoder can always start. Its properties are listed, here and in
 * `#makeUnit`: object spread would cost 50 % more CPU for each PES packet (bench/mpegts).
 */
function withoutVideo({ chunks, sizeBytes, payload, damaged }: VideoPes): UnitContent {
  return {
    chunks,
    sizeBytes,
    payload,
    randomAccess: true,
    newParameters: false,
    inBandSets: false,
    gradualRefresh: false,
    decodableLeading: false,
    startsFrame: true,
    damaged,
    parameterSets: undefined,
  }
}
