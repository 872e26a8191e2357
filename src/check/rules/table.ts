/**
 * All rules, in order of damage within each family.
 *
 * @module
 */
import type { Rule } from './rule.ts'

export const RULES: readonly Rule[] = []
