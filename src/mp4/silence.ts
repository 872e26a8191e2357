/**
 * Silence in place of audio that was not sent.
 *
 * @module
 */
import { AAC_FRAME_SAMPLES, SILENT_BLOCKS } from '../codec/adts.ts'
import type { MediaFormat } from './init-segment.ts'
import type { Sample } from './sample.ts'

/** Duration of a silent sample in ticks of the track's timescale. */
export const SILENT_TICKS = AAC_FRAME_SAMPLES

/**
 * @param decodeTicks  of the first sample
 * @returns samples one after the other; undefined where none is known: in other codecs than AAC, and for more than two
 *   channels
 */
export function silentSamples(
  format: MediaFormat,
  decodeTicks: number,
  count: number,
): readonly Sample<MediaFormat>[] | undefined {
  const block = format.codec === 'aac' && SILENT_BLOCKS[format.config.channelConfiguration]
  if (!block) return undefined
  return Array.from({ length: count }, (_, index) => ({
    format,
    chunks: [block],
    sizeBytes: block.length,
    decodeTicks: decodeTicks + index * SILENT_TICKS,
    compositionOffset: 0,
    sync: true,
    continues: false,
  }))
}
