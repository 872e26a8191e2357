/**
 * Tracks of a transport stream as CMAF: demuxed, made into samples, written in fragments.
 *
 * @module
 */
import { AudioSamples, type AudioSource } from '../../src/mp4/audio-samples.ts'
import type { AudioFormat } from '../../src/mp4/audio-format.ts'
import { FragmentWriter, type Fragment } from '../../src/mp4/fragment.ts'
import { encodeInitSegment } from '../../src/mp4/init-segment.ts'
import type { Sample } from '../../src/mp4/sample.ts'
import { VideoSamples } from '../../src/mp4/video-samples.ts'
import type { VideoFormat } from '../../src/mp4/video-format.ts'
import { decodePesHeader, pesBytes } from '../../src/mpegts/pes.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import { demux, payloadOf, unitsOf } from '../mpegts/demux.ts'
import { ChunkMemory } from './chunk-memory.ts'

export type Samples = readonly Sample<VideoFormat | AudioFormat>[]

/** @returns CODECS value of the track's sample entry (RFC 6381) */
export function codecStringOf(format: VideoFormat | AudioFormat): string {
  return 'sequence' in format ? format.sequence.video.codecString : format.parameters.codecString
}

/** @param pid  the first track of the kind by default */
export function unitsOfKind(bytes: Buffer, kind: 'video' | 'audio', pid?: number): PesUnit[] {
  const units = unitsOf(demux(bytes)).filter(({ track }) => track.kind === kind)
  return units.filter(({ track }) => track.pid === (pid ?? units[0]!.track.pid))
}

export function readVideo(units: readonly PesUnit[], codec: 'h264' | 'h265'): Samples {
  const samples = new VideoSamples(codec)
  return units.flatMap((unit) => {
    const pes = pesBytes(unit.chunks)
    const { sizeBytes } = decodePesHeader(pes)!
    const sample = samples.push({ ...unit, chunks: [pes.subarray(sizeBytes)] })
    return sample === undefined ? [] : [sample]
  })
}

export function readAudio(units: readonly PesUnit[], source: AudioSource): Samples {
  const samples = new AudioSamples(source)
  return units.flatMap((unit) => samples.push({ ...unit, bytes: payloadOf(unit) }))
}

export interface FragmentedTrack {
  readonly init: Buffer
  readonly fragments: readonly Fragment[]
  /** Init segment and all fragments. */
  readonly file: Buffer
}

/** Writes samples in fragments; every third begins a segment. The last sample lasts as long as the one before. */
export function fragment(
  samples: Samples,
  { perFragment = 6, id = 1 }: { perFragment?: number; id?: number } = {},
): FragmentedTrack {
  const writer = new FragmentWriter({ trackId: id, memory: new ChunkMemory() })
  const fragments: Fragment[] = []
  const end = (untilTicks: number) => {
    const startsSegment = fragments.length % 3 === 0
    const written = writer.end({ untilTicks, startsSegment })
    if (written !== undefined) fragments.push(written)
  }
  let count = 0
  for (const sample of samples) {
    if (!sample.continues && count++ % perFragment === 0) end(sample.decodeTicks)
    writer.push(sample)
  }
  const [beforeLast, last] = samples.slice(-2)
  end(2 * last!.decodeTicks - beforeLast!.decodeTicks)
  const init = encodeInitSegment({ id, format: samples[0]!.format })
  const file = Buffer.concat([init, ...fragments.flatMap(({ chunks }) => chunks)])
  return { init, fragments, file }
}
