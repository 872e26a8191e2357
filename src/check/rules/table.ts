/**
 * All rules, in order of damage within each family.
 *
 * @module
 */
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
]
