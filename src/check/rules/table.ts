/**
 * All rules, in order of damage within each family.
 *
 * @module
 */
import { DATES } from './dates.ts'
import { DELIVERY } from './delivery.ts'
import { FRESHNESS } from './freshness.ts'
import { HINTS } from './hints.ts'
import { HTTP_DIRECTIVES } from './http-directives.ts'
import { HTTP_HEADERS } from './http-headers.ts'
import { HTTP_METHODS } from './http-methods.ts'
import { HTTP } from './http.ts'
import { LOW_LATENCY } from './low-latency.ts'
import { MEDIA } from './media.ts'
import { MULTIVARIANT } from './multivariant.ts'
import { PLAYLIST_SYNTAX } from './playlist-syntax.ts'
import { RENDITION_GROUPS } from './rendition-groups.ts'
import type { Rule } from './rule.ts'
import { SECOND_OPINION } from './second-opinion.ts'
import { SEGMENT_SYNTAX } from './segment-syntax.ts'
import { SERVER_CONTROL } from './server-control.ts'
import { TARGET_DURATIONS } from './target-durations.ts'
import { TIMELINE } from './timeline.ts'

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
  ...MEDIA,
  ...MULTIVARIANT,
  ...RENDITION_GROUPS,
  ...HTTP,
  ...HTTP_DIRECTIVES,
  ...HTTP_HEADERS,
  ...HTTP_METHODS,
]
