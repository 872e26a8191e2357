/**
 * Options and outputs of a rendition's writer.
 *
 * @module
 */
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import type { RenditionName } from '../file-names.ts'
import type { Part } from '../store/part.ts'
import type { Segment } from '../store/segment.ts'

export interface RenditionWriterOptions {
  readonly name: RenditionName
  readonly epoch: string
  readonly maxSegmentBytes: number
  readonly slabs: SlabPool
}

/** The parts of a segment precede it. */
export type WriterOutput =
  | { readonly type: 'part'; readonly part: Part }
  | { readonly type: 'segment'; readonly segment: Segment }
