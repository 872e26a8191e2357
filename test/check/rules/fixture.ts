/**
 * Good sessions and good playlists, and mutations of them that break one rule each.
 *
 * @module
 */
import type { Test } from 'tap'
import { isReload, type Exchange } from '../../../src/check/exchange.ts'
import { Judge, type Finding } from '../../../src/check/judge/judge.ts'
import type { Rule } from '../../../src/check/rules/rule.ts'
import { RULES } from '../../../src/check/rules/table.ts'
import { ORIGIN, recordSession, withBody, type SessionOptions } from '../session.ts'

export const PLAYLIST_URL = `${ORIGIN}/video/studio/playlist.m3u8`
const START_MS = Date.UTC(2026, 0, 1)

/** Exchanges with playlists of a session of our own, without media. */
export async function recordPlaylists(options: SessionOptions = {}): Promise<Exchange[]> {
  const exchanges = await recordSession(options)
  return exchanges.filter(({ role }) => role === 'multivariant' || isReload(role))
}

export function judge(
  exchanges: readonly Exchange[],
  rules: readonly Rule[] = RULES,
): readonly Finding[] {
  const judge = new Judge(rules)
  for (const exchange of exchanges) judge.push(exchange)
  judge.end()
  return judge.findings
}

/** Checks that the rule, and no other of `rules`, is found broken. */
export function breaks(
  t: Test,
  id: string,
  exchanges: readonly Exchange[],
  title = id,
  rules = RULES,
): Finding {
  const findings = judge(exchanges, rules)
  const found = findings.map(({ rule, evidence }) => ({ id: rule.id, evidence: evidence[0] }))
  t.same(
    found.map(({ id }) => id),
    [id],
    `${title}: ${JSON.stringify(found)}`,
  )
  return findings[0]!
}

export function keepsAll(t: Test, exchanges: readonly Exchange[], title = 'breaks no rule'): void {
  const found = judge(exchanges).map(({ rule, evidence }) => ({ id: rule.id, evidence }))
  t.same(found, [], title)
}

/** Edits the text of each media playlist; `index` counts the versions of one playlist. */
export function editMedia(
  exchanges: readonly Exchange[],
  edit: (text: string, index: number, url: string) => string,
): Exchange[] {
  const counts = new Map<string, number>()
  return exchanges.map((exchange) => {
    if (!isReload(exchange.role)) return exchange
    const url = exchange.url.replace(/\?.*/, '')
    const index = counts.get(url) ?? 0
    counts.set(url, index + 1)
    return withBody(exchange, (text) => edit(text, index, url))
  })
}

export function editMultivariant(
  exchanges: readonly Exchange[],
  edit: (text: string) => string,
): Exchange[] {
  return exchanges.map((exchange) =>
    exchange.role === 'multivariant' ? withBody(exchange, edit) : exchange,
  )
}

interface Line {
  readonly msn: number
  readonly sec?: string
  readonly discontinuity?: boolean
  readonly atSec?: number
  /** Lines before the PROGRAM-DATE-TIME. */
  readonly tags?: readonly string[]
}

/** Classic media playlist with segments of 2 s. */
export function playlist(
  lines: readonly Line[],
  head: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const tags = {
    'EXT-X-VERSION': 3,
    'EXT-X-TARGETDURATION': 2,
    'EXT-X-MEDIA-SEQUENCE': lines[0]?.msn ?? 0,
    'EXT-X-DISCONTINUITY-SEQUENCE': 0,
    ...head,
  }
  return [
    '#EXTM3U',
    ...Object.entries(tags).flatMap(([name, value]) =>
      value === undefined ? [] : [`#${name}:${value}`],
    ),
    ...lines.flatMap(
      ({ msn, sec = '2.000', discontinuity = false, atSec = msn * 2, tags = [] }) => [
        ...(discontinuity ? ['#EXT-X-DISCONTINUITY'] : []),
        ...tags,
        `#EXT-X-PROGRAM-DATE-TIME:${new Date(START_MS + atSec * 1000).toISOString()}`,
        `#EXTINF:${sec},`,
        `a-${msn}.ts`,
      ],
    ),
    '',
  ].join('\n')
}

/** Segments `msn` to `msn + count - 1`. */
export function from(msn: number, count: number, rest: Omit<Line, 'msn'> = {}): Line[] {
  return Array.from({ length: count }, (_, index) => ({ ...rest, msn: msn + index }))
}

const GOOD_HEADERS = {
  'content-type': 'application/vnd.apple.mpegurl',
  'cache-control': 'max-age=1',
  'access-control-allow-origin': '*',
  etag: '"1"',
}

/** A reply with a playlist at a time in seconds since the stream began. */
export function load(text: string, atSec: number, rest: Partial<Exchange> = {}): Exchange {
  const atMs = START_MS + atSec * 1000
  const url = rest.url ?? PLAYLIST_URL
  return {
    ...{ role: 'playlist', method: 'GET', url, headers: {}, sentAtMs: atMs },
    reply: {
      ...{ status: 200, url, protocol: 'h2', body: Buffer.from(text), longestPauseMs: 0 },
      headers: GOOD_HEADERS,
      ...{ headersAtMs: atMs, endedAtMs: atMs },
    },
    ...rest,
  }
}

/** Versions of a playlist in order, each published when its last segment is complete. */
export function versions(...texts: string[]): Exchange[] {
  let atMs = START_MS
  return texts.map((text) => {
    const dates = [...text.matchAll(/DATE-TIME:([\dT:.-]*)/g)].map(
      ([, date]) => Date.parse(`${date}Z`) + 2000,
    )
    atMs = Math.max(atMs, ...dates)
    return load(text, (atMs - START_MS) / 1000)
  })
}
