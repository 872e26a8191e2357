/**
 * Outputs of a rendition's writer, in order: the parts of a segment, then the segment.
 *
 * @module
 */
import type { Part } from '../store/part.ts'
import type { Segment } from '../store/segment.ts'

export type WriterOutput =
  | { readonly type: 'part'; readonly part: Part }
  | { readonly type: 'segment'; readonly segment: Segment }
