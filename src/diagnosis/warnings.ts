/**
 * Table of all warnings of a stream: code -> when it begins, when it ends, message.
 *
 * A message has three parts for the operator: what is wrong, with the figure; what viewers see; what to set. It has at
 * most 160 characters.
 *
 * @module
 */
import { LINK_WARNINGS } from './link-warnings.ts'
import { SERVICE_WARNINGS } from './service-warnings.ts'
import { SOURCE_WARNINGS } from './source-warnings.ts'
import type { WarningRule } from './warning-rule.ts'

export const WARNINGS = { ...SOURCE_WARNINGS, ...LINK_WARNINGS, ...SERVICE_WARNINGS }

export type WarningCode = keyof typeof WARNINGS

/** Observation with its figures, which may begin, continue or end the warning of the same code. */
export type Fact = {
  [Code in WarningCode]: { readonly code: Code } & FiguresOf<(typeof WARNINGS)[Code]>
}[WarningCode]

type FiguresOf<Rule> = Rule extends WarningRule<infer Figures> ? Figures : never
