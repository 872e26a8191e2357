/**
 * Reader of the samples in the PES packets of one track.
 *
 * @module
 */
import type { AudioParameters } from '../../codec/audio-frame.ts'
import { opusChannels } from '../../codec/opus.ts'
import type { ParameterSet } from '../../codec/parameter-sets.ts'
import type { OpusFormat } from '../../mp4/audio-format.ts'
import { AudioSamples, type AudioSource } from '../../mp4/audio-samples.ts'
import type { MediaFormat } from '../../mp4/init-segment.ts'
import type { Sample, SampleStats } from '../../mp4/sample.ts'
import { VideoSamples } from '../../mp4/video-samples.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import type { Track, TrackParameters } from '../../mpegts/track.ts'

export { noSampleStats, type SampleStats } from '../../mp4/sample.ts'

/** What encoders may send once, known from the timelines before. */
interface Earlier {
  /** Format of the samples. */
  readonly format: MediaFormat | undefined
  readonly parameterSets: readonly ParameterSet[]
}

/** `push` each PES packet of a timeline in order. */
export interface SampleReader {
  /** End of the latest sample in its timescale, where it is known without the next one: of audio. */
  readonly nextTicks: number | undefined
  /** Number of frames so far that no sample can express. */
  readonly inexpressible: number
  /** Latest parameter sets of video; undefined while one is missing. */
  readonly parameterSets: readonly ParameterSet[] | undefined
  /**
   * @param liftTicks  added to its times, 90 kHz
   * @returns samples whose bytes are views into the PES packet or, of audio, in memory of their own
   */
  push(unit: PesUnit, liftTicks: number): readonly Sample<MediaFormat>[]
}

/**
 * @param stats  to count in
 * @returns undefined for a codec that CMAF does not carry here
 */
export function createSampleReader(
  track: Track,
  stats: SampleStats,
  { format, parameterSets }: Earlier,
): SampleReader | undefined {
  if (track.codec === 'h264' || track.codec === 'h265') {
    const sets = format?.codec === track.codec ? parameterSets : undefined
    return new VideoReader(new VideoSamples(track.codec, stats, sets))
  }
  const source = audioSource(track)
  return source && new AudioReader(source, stats)
}

function audioSource({ codec, parameters }: Track): AudioSource | undefined {
  switch (codec) {
    case 'aac':
      // Of LATM: ADTS cannot signal SBR.
      return { codec, ...(isAudio(parameters) && { signaled: parameters }) }
    case 'mp3':
    case 'ac3':
    case 'eac3':
      return { codec }
    case 'opus':
      return { codec, format: opusFormat(parameters) }
    default:
      return undefined
  }
}

/** Pre-skip is unknown in the middle of a stream, and so 0: the frames have their timestamps. */
function opusFormat({
  codecString = 'opus',
  channels = 2,
}: Partial<TrackParameters> = {}): OpusFormat {
  const rate = 48_000
  const mapping = opusChannels(channels)
  return {
    codec: 'opus',
    parameters: { codecString, sampleRate: rate, channels },
    timescale: rate,
    preSkip: 0,
    inputSampleRate: rate,
    ...(channels > 2 && mapping && { mapping: { family: 1, ...mapping } }),
  }
}

function isAudio(parameters: TrackParameters | undefined): parameters is AudioParameters {
  return parameters?.sampleRate !== undefined
}

class VideoReader implements SampleReader {
  readonly nextTicks = undefined
  readonly inexpressible = 0
  readonly #samples: VideoSamples

  constructor(samples: VideoSamples) {
    this.#samples = samples
  }

  get parameterSets(): readonly ParameterSet[] | undefined {
    return this.#samples.parameterSets
  }

  push(unit: PesUnit, liftTicks: number): readonly Sample<MediaFormat>[] {
    const { payload, startsFrame, damaged, inBandSets } = unit
    const sample = this.#samples.push({
      chunks: [payload],
      ptsTicks: unit.ptsTicks + liftTicks,
      dtsTicks: unit.dtsTicks + liftTicks,
      startsFrame,
      damaged,
      inBandSets,
    })
    return sample === undefined ? [] : [sample]
  }
}

class AudioReader implements SampleReader {
  readonly parameterSets = undefined
  readonly #samples: AudioSamples

  constructor(source: AudioSource, stats: SampleStats) {
    this.#samples = new AudioSamples(source, stats)
  }

  get nextTicks(): number | undefined {
    return this.#samples.nextTicks
  }

  get inexpressible(): number {
    return this.#samples.inexpressible
  }

  push({ payload, ptsTicks, damaged }: PesUnit, liftTicks: number): readonly Sample<MediaFormat>[] {
    return this.#samples.push({ bytes: payload, ptsTicks: ptsTicks + liftTicks, damaged })
  }
}
