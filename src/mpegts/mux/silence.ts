/**
 * Silent audio track in AAC-LC, which replaces an audio track that stopped.
 *
 * @module
 */
import { AAC_FRAME_SAMPLES, encodeAdtsHeader, SILENT_BLOCKS } from '../../codec/adts.ts'
import { AAC_SAMPLE_RATES } from '../../codec/audio-specific-config.ts'
import type { PesUnit } from '../pes-unit.ts'
import { StreamType } from '../psi/stream-type.ts'
import { encodePes } from './pes-packetizer.ts'
import { TICKS_PER_SEC } from '../timestamps.ts'
import type { Track } from '../track.ts'

const FRAMES_PER_PES = 8

/** Maximum time between the end of the silence and the video; a longer time is a timestamp discontinuity. */
const MAX_DISTANCE_TICKS = 1 * TICKS_PER_SEC

const AUDIO_STREAM_ID = 0xc0
const USUAL_SAMPLE_RATE = 48_000

export class Silence {
  readonly track: Track
  readonly #sampleRate: number
  readonly #frame: Buffer
  /** PTS of the first frame since the latest timestamp discontinuity, 90 kHz; undefined before the first frame. */
  #startTicks: number | undefined
  /** Number of frames since `#startTicks`. */
  #frames = 0

  /**
   * @param original  the replaced track: a sample rate that AAC lacks becomes 48 kHz; mono stays mono, any other
   *   channel layout becomes stereo
   */
  constructor(pid: number, original: Track) {
    const { sampleRate, channels } = original.parameters ?? {}
    const rates: readonly number[] = AAC_SAMPLE_RATES
    this.#sampleRate = rates.find((rate) => rate === sampleRate) ?? USUAL_SAMPLE_RATE
    const channelConfiguration = channels === 1 ? 1 : 2
    const block = SILENT_BLOCKS[channelConfiguration]!
    const parameters = {
      codecString: 'mp4a.40.2',
      sampleRate: this.#sampleRate,
      channels: channelConfiguration,
    }
    const sampleRateIndex = rates.indexOf(this.#sampleRate)
    const config = { parameters, sampleRateIndex, channelConfiguration }
    const frame = Buffer.concat([encodeAdtsHeader(config, block.length), block])
    this.#frame = frame
    this.track = {
      pid,
      streamType: StreamType.AAC_ADTS,
      kind: 'audio',
      codec: 'aac',
      descriptors: Buffer.alloc(0),
      ...(original.language !== undefined && { language: original.language }),
      parameters,
    }
  }

  /**
   * @param untilTicks  DTS of the video, 90 kHz, unwrapped
   * @returns the next PES packets of silence: all with a PTS of at most `untilTicks`
   */
  takeUntil(untilTicks: number): PesUnit[] {
    const units: PesUnit[] = []
    if (this.#startTicks === undefined || Math.abs(untilTicks - this.endTicks) > MAX_DISTANCE_TICKS)
      this.start(untilTicks)
    while (this.endTicks <= untilTicks) units.push(this.#createUnit(FRAMES_PER_PES))
    return units
  }

  /**
   * @param untilTicks  end of the silence, 90 kHz
   * @param minFrames  minimum number of frames of a PES packet
   * @returns the next PES packets of silence, which end at or before `untilTicks`
   */
  fill(untilTicks: number, minFrames = FRAMES_PER_PES): PesUnit[] {
    const units: PesUnit[] = []
    for (;;) {
      const missing = Math.floor((untilTicks - this.endTicks) / this.#frameTicks)
      if (missing < minFrames) return units
      units.push(this.#createUnit(Math.min(missing, FRAMES_PER_PES)))
    }
  }

  /** Begins the silence anew. */
  start(ticks: number): void {
    this.#startTicks = ticks
    this.#frames = 0
  }

  /** End of the silence so far, 90 kHz. */
  get endTicks(): number {
    return Math.round((this.#startTicks ?? 0) + this.#frames * this.#frameTicks)
  }

  get #frameTicks(): number {
    return (AAC_FRAME_SAMPLES * TICKS_PER_SEC) / this.#sampleRate
  }

  #createUnit(frames: number): PesUnit {
    const { track, endTicks: ticks } = this
    const payload = Buffer.concat(Array.from({ length: frames }, () => this.#frame))
    this.#frames += frames
    const times = { ptsTicks: ticks, dtsTicks: ticks }
    const bytes = encodePes(track.pid, AUDIO_STREAM_ID, times, payload)
    return {
      track,
      chunks: [bytes],
      sizeBytes: bytes.length,
      payload,
      ...times,
      randomAccess: true,
      newParameters: false,
      inBandSets: false,
      gradualRefresh: false,
      decodableLeading: false,
      startsFrame: true,
      damaged: false,
    }
  }
}
