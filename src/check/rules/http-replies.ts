/**
 * Reading of replies that the rules on HTTP share.
 *
 * @module
 */
import { isReload, type Exchange, type Reply, type Role } from '../exchange.ts'
import { findMedia } from '../playlist/find-media.ts'
import type { ListedPart, ListedSegment, MediaPlaylist } from '../playlist/media-playlist.ts'
import type { Evidence, Fact, Subjects } from './rule.ts'

const MEDIA_ROLES = new Set<Role>(['segment', 'part', 'init'])

/** Directives that keep a cache from reuse, and those that state a lifetime, the first that is present (RFC 9111 5.2.2). */
const DIRECTIVES = {
  shared: [/\b(no-store|no-cache|private)\b/, [/\bs-maxage="?(\d+)/, /\bmax-age="?(\d+)/]],
  browser: [/\b(no-store|no-cache)\b/, [/\bmax-age="?(\d+)/]],
} as const

export type ReplySubject = Subjects['reply']

export function isPlaylistRole(role: Role): boolean {
  return role === 'multivariant' || isReload(role)
}

export function isMediaRole(role: Role): boolean {
  return MEDIA_ROLES.has(role)
}

export function isOk({ status }: Reply): boolean {
  return status === 200 || status === 206
}

/** A fact about a reply. */
export function replyFact({ url }: Exchange, text: string): Fact {
  return { text, url }
}

/** Contradiction between what a request was for and the status of its reply. */
export function statusEvidence(claim: string, { exchange, reply }: ReplySubject): Evidence {
  return [{ text: claim }, replyFact(exchange, `the status is ${reply.status}`)]
}

/** Contradiction between a requirement and a header of a reply. */
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
  playlist: MediaPlaylist | undefined,
  exchange: Exchange,
): ListedSegment | ListedPart | undefined {
  const found = playlist && findMedia(playlist, exchange)
  return found?.part ?? found?.segment
}

/**
 * Lifetime of a reply in caches of a kind, in seconds (RFC 9111 4.2.1): 0 if they may not store or reuse it; undefined
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
