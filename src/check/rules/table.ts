/**
 * All rules, in order of damage within each family.
 *
 * @module
 */
import { DATES } from './dates.ts'
import { DELIVERY } from './delivery.ts'
import { FRESHNESS, TIMELINE } from './updates.ts'
import { HINTS, LOW_LATENCY } from './parts.ts'
import { HTTP_DIRECTIVES } from './http-directives.ts'
import { HTTP_HEADERS, HTTP_METHODS } from './http-server.ts'
import { HTTP } from './http-fetching.ts'
import { MULTIVARIANT, RENDITION_GROUPS } from './multivariant.ts'
import { PLAYLIST_SYNTAX, SEGMENT_SYNTAX } from './syntax.ts'
import type { Rule } from './rule.ts'
import { SECOND_OPINION } from './second-opinion.ts'
import { SERVER_CONTROL, TARGET_DURATIONS } from './targets.ts'
import { CMAF } from './cmaf.ts'
import { KEY_FRAMES } from './key-frames.ts'
import { MEDIA_FORMAT } from './media-format.ts'
import { MEDIA_TIMELINE } from './media-timeline.ts'
import { VARIANT_MEDIA } from './variant-media.ts'

/** All rules of the checker. */
export const RULES: readonly Rule[] = [
  ...TARGET_DURATIONS,
  ...TIMELINE,
  ...FRESHNESS,
  ...LOW_LATENCY,
  ...HINTS,
  ...DELIVERY,
  ...DATES,
  ...SERVER_CONTROL,
  ...PLAYLIST_SYNTAX,
  ...SEGMENT_SYNTAX,
  SECOND_OPINION,
  ...MEDIA_TIMELINE,
  ...KEY_FRAMES,
  ...MEDIA_FORMAT,
  ...CMAF,
  ...VARIANT_MEDIA,
  ...MULTIVARIANT,
  ...RENDITION_GROUPS,
  ...HTTP,
  ...HTTP_DIRECTIVES,
  ...HTTP_HEADERS,
  ...HTTP_METHODS,
]
