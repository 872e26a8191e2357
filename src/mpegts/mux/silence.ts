/**
 * Silent audio track in AAC-LC, which replaces an audio track that stopped.
 *
 * @module
 */
import { AAC_FRAME_SAMPLES, encodeAdtsHeader, SILENT_BLOCKS } from '../../codec/adts.ts'
import { AAC_SAMPLE_RATES } from '../../codec/audio-specific-config.ts'
import type { PesUnit } from '../pes-unit.ts'
import { HAS_PAYLOAD, PACKET_BYTES, SYNC_BYTE, UNIT_START } from '../packet.ts'
import { StreamType } from '../psi/stream-type.ts'
import { encodePesHeader } from '../pes.ts'
import { packetizePes } from './pes-packetizer.ts'
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
  readonly #payload: Buffer
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
    this.#payload = Buffer.concat(Array.from({ length: FRAMES_PER_PES }, () => frame))
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
    if (Math.abs(untilTicks - this.#nextTicks) > MAX_DISTANCE_TICKS) this.#startTicks = undefined
    if (this.#startTicks === undefined) {
      this.#startTicks = untilTicks
      this.#frames = 0
    }
    while (this.#nextTicks <= untilTicks) {
      units.push(this.#createUnit(this.#nextTicks))
      this.#frames += FRAMES_PER_PES
    }
    return units
  }

  get #nextTicks(): number {
    const ticks = (this.#frames * AAC_FRAME_SAMPLES * TICKS_PER_SEC) / this.#sampleRate
    return Math.round((this.#startTicks ?? 0) + ticks)
  }

  #createUnit(ticks: number): PesUnit {
    const { track } = this
    const packet = Buffer.alloc(PACKET_BYTES)
    packet[0] = SYNC_BYTE
    packet.writeUInt16BE((UNIT_START << 8) | track.pid, 1)
    packet[3] = HAS_PAYLOAD
    const bytes = packetizePes(
      packet,
      Buffer.concat([encodePesHeader(AUDIO_STREAM_ID, ticks, this.#payload.length), this.#payload]),
    )
    return {
      track,
      chunks: [bytes],
      sizeBytes: bytes.length,
      payload: this.#payload,
      ptsTicks: ticks,
      dtsTicks: ticks,
      randomAccess: true,
      newParameters: false,
      gradualRefresh: false,
      decodableLeading: false,
      startsFrame: true,
      damaged: false,
    }
  }
}
