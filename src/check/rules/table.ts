/**
 * All rules, in order of damage within each family.
 *
 * @module
 */
import { HTTP } from './http.ts'
import { HTTP_DIRECTIVES } from './http-directives.ts'
import { HTTP_HEADERS } from './http-headers.ts'
import { HTTP_METHODS } from './http-methods.ts'
import { MEDIA } from './media.ts'
import { PLAYLIST_SYNTAX } from './playlist-syntax.ts'
import type { Rule } from './rule.ts'
import { SEGMENT_SYNTAX } from './segment-syntax.ts'
import { SERVER_CONTROL } from './server-control.ts'
import { TARGET_DURATIONS } from './target-durations.ts'

export const RULES: readonly Rule[] = [
  ...TARGET_DURATIONS,
  ...SERVER_CONTROL,
  ...PLAYLIST_SYNTAX,
  ...SEGMENT_SYNTAX,
  ...MEDIA,
  ...HTTP,
  ...HTTP_DIRECTIVES,
  ...HTTP_HEADERS,
  ...HTTP_METHODS,
]
