/**
 * Facts about responses that the rules on HTTP share.
 *
 * @module
 */
import { unless } from './evidence.ts'
import type { Exchange, Reply, RequestRole } from '../exchange.ts'
import {
  findMedia,
  type ParsedPart,
  type ParsedSegment,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import type { Evidence, Fact, RuleOn } from './rule.ts'
import type { Subjects } from './subjects.ts'

/** Directives that keep a cache from reuse, and those that state a lifetime, the first that is present (RFC 9111 5.2.2). */
const DIRECTIVES = {
  shared: [/\b(no-store|no-cache|private)\b/, [/\bs-maxage="?(\d+)/, /\bmax-age="?(\d+)/]],
  browser: [/\b(no-store|no-cache)\b/, [/\bmax-age="?(\d+)/]],
} as const

export type ReplySubject = Subjects['reply']

/** A fact about a response. */
export function replyFact({ url }: Exchange, text: string): Fact {
  return { text, url }
}

/** Contradiction between what a request was for and the status of its response. */
export function statusEvidence(claim: string, { exchange, reply }: ReplySubject): Evidence {
  return [{ text: claim }, replyFact(exchange, `the status is ${reply.status}`)]
}

/** Check of a probe: its response has one of the statuses. */
export function checkStatus(
  role: RequestRole,
  expected: readonly number[],
  claim: string,
): RuleOn<'reply'>['check'] {
  return (subject) =>
    unless(subject.exchange.role !== role || expected.includes(subject.reply.status), () =>
      statusEvidence(claim, subject),
    )
}

/** Contradiction between a requirement and a header of a response. */
export function headerEvidence(
  claim: string,
  { exchange, reply }: ReplySubject,
  name: string,
): Evidence {
  const value = reply.headers[name.toLowerCase()]
  const seen = value === undefined ? `the reply has no ${name}` : `${name} is ${value}`
  return [{ text: claim }, replyFact(exchange, seen)]
}

/** Segment or part of the playlist that a request was for. */
export function findListed(
  playlist: ParsedPlaylist | undefined,
  exchange: Exchange,
): ParsedSegment | ParsedPart | undefined {
  const found = playlist && findMedia(playlist, exchange)
  return found?.part ?? found?.segment
}

/**
 * Lifetime of a response in caches of a kind, in seconds (RFC 9111 4.2.1): 0 if they may not store or reuse it; undefined
 * without a statement.
 */
export function lifetimeSec(
  { headers }: Reply,
  cache: 'shared' | 'browser' = 'shared',
): number | undefined {
  const directives = headers['cache-control']?.toLowerCase()
  if (directives !== undefined) {
    const [refusal, lifetimes] = DIRECTIVES[cache]
    if (refusal.test(directives)) return 0
    const [age] = lifetimes.flatMap((lifetime) => lifetime.exec(directives)?.[1] ?? [])
    if (age !== undefined) return Number(age)
  }
  if (headers['expires'] === undefined) return undefined
  const lifetimeMs = Date.parse(headers['expires']) - Date.parse(headers['date'] ?? '')
  return Number.isNaN(lifetimeMs) ? 0 : Math.max(0, lifetimeMs / 1000)
}

/** Essence of the Content-Type (RFC 9110 8.3.1). */
export function mimeType({ headers }: Reply): string {
  return (headers['content-type'] ?? '').replace(/;.*/s, '').trim().toLowerCase()
}

export function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '')
}
