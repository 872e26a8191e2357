/**
 * Check of a stream in a process of its own, for a service that must not wait for it. The process gets a `CheckOrder`,
 * answers with `{ summary }`, a `CheckSummary`, and ends; it also ends when its parent is gone.
 *
 * @module
 */
import { constants, setPriority } from 'node:os'
import { Agent, Pool, setGlobalDispatcher } from 'undici'
import { checkStream } from './check-stream.ts'
import { verdicts, worstEffect, worstFirst, type PlayerVerdict } from './report/verdicts.ts'
import type { Level, Player, Severity } from './rules/rule.ts'

export interface CheckOrder {
  readonly url: string
  readonly seconds: number
  /** Size of all bodies, decoded, at which the check ends early. */
  readonly maxBytes: number
}

export interface CheckSummary {
  readonly durationSec: number
  /** Whether `maxBytes` ended the check. */
  readonly isCutShort: boolean
  readonly requests: number
  /** Number of playlists that were read; 0: nothing could be checked. */
  readonly playlists: number
  readonly outcomes: Readonly<Record<Player, PlayerVerdict['outcome']>>
  /** Worst first. */
  readonly findings: readonly SummarizedFinding[]
}

interface SummarizedFinding {
  readonly id: string
  readonly clause: string
  readonly level: Level
  /** Worst effect on a player; absent if no player is known to suffer. */
  readonly severity?: Severity
  readonly requirement: string
  readonly remedy: string
  readonly count: number
  /** The first contradiction: a claim, and what was seen. */
  readonly evidence: readonly string[]
}

process.once('disconnect', () => process.exit())
process.once('message', (order: CheckOrder) => {
  // The service comes first.
  setPriority(constants.priority.PRIORITY_LOW)
  void summarize(order).then((summary) => process.send!({ summary }, () => process.disconnect()))
})

async function summarize(order: CheckOrder): Promise<CheckSummary> {
  trustOrigin(order.url)
  const { durationSec, isCutShort, requests, summary, findings } = await checkStream(order)
  const outcomes = Object.entries(verdicts(findings)).map(([player, { outcome }]) => [
    player,
    outcome,
  ])
  return {
    durationSec,
    isCutShort,
    requests,
    playlists: summary.renditions.length,
    outcomes: Object.fromEntries(outcomes) as CheckSummary['outcomes'],
    findings: worstFirst(findings).map(({ rule, count, evidence }) => {
      const { id, clause, level, requirement, remedy } = rule
      const severity = worstEffect(rule)
      return {
        id,
        clause,
        level,
        requirement,
        remedy,
        count,
        ...(severity !== undefined && { severity }),
        evidence: (evidence[0] ?? []).map(({ text }) => text),
      }
    }),
  }
}

/** Accepts any certificate of the origin of `url`: the service's own is not for the loopback. Others are verified. */
function trustOrigin(url: string): void {
  const { origin: trusted } = new URL(url)
  const factory: Agent.Options['factory'] = (origin) =>
    new Pool(origin, { connect: { rejectUnauthorized: new URL(origin).origin !== trusted } })
  setGlobalDispatcher(new Agent({ factory }))
}
