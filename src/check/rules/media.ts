/**
 * Rules on the media inside of segments and parts, in order of damage.
 *
 * @module
 */
import { CMAF } from './cmaf.ts'
import { KEY_FRAMES } from './key-frames.ts'
import { MEDIA_FORMAT } from './media-format.ts'
import { MEDIA_TIMELINE } from './media-timeline.ts'
import type { Rule } from './rule.ts'
import { VARIANT_MEDIA } from './variant-media.ts'

export const MEDIA: readonly Rule[] = [
  ...MEDIA_TIMELINE,
  ...KEY_FRAMES,
  ...MEDIA_FORMAT,
  ...CMAF,
  ...VARIANT_MEDIA,
]
