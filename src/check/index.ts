/**
 * `millrace/check`: what is wrong with a live HLS stream, by clause, with the evidence.
 *
 * @module millrace/check
 */
export { checkStream, type CheckOptions, type ReplayOptions } from './check-stream.ts'
export type { CheckResult, CheckProgress as Progress } from './check-stream.ts'
export type { Exchange, Reply, RequestRole as Role } from './exchange.ts'
export type { Finding } from './judge/judge.ts'
export {
  PLAYERS,
  type Effect,
  type Evidence,
  type Fact,
  type Level,
  type Player,
  type Rule,
  type RuleText,
  type Severity,
} from './rules/rule.ts'
export { RULES } from './rules/table.ts'
export type { RenditionFigures as RenditionSummary, Summary } from './rules/subjects.ts'
