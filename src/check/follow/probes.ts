/**
 * Probes: requests that a player does not need at that moment, sent a few times a check to see how the server responds.
 *
 * @module
 */
import { withDirectives } from '../playlist/directives.ts'
import {
  isComplete,
  totalSec,
  type ParsedSegment,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import type { Request } from './http-client.ts'

/** Times that each probe is sent for one playlist. */
const ROUNDS = 2

/** Share of the check after which all probes are sent. */
const SHARE = 0.9

/** Maximum number of removed segments that are asked for. */
const MAX_GONE = 3

/** Share of the time that removed media must stay available, after which it is asked for. */
const GONE_SHARE = 0.6

type Probe = (url: string, playlist: ParsedPlaylist) => Request | undefined

const onSegment =
  (request: Pick<Request, 'role' | 'method' | 'headers'>): Probe =>
  (playlistUrl, { segments }) => {
    const url = segments.findLast((segment) => isComplete(segment) && !segment.gap)?.url
    return url === undefined ? undefined : { ...request, url, playlistUrl }
  }

const onPlaylist =
  (role: Request['role'], coding: string): Probe =>
  (url) => ({ role, url, playlistUrl: url, headers: { 'accept-encoding': coding } })

const onDirectives =
  (role: Request['role'], find: (playlist: ParsedPlaylist) => object): Probe =>
  (url, playlist) => {
    const { serverControl, ended, segments } = playlist
    if (serverControl?.canBlockReload !== true || ended || segments.length === 0) return undefined
    return { role, url: withDirectives(url, find(playlist)), playlistUrl: url }
  }

const lastSequence = ({ segments }: ParsedPlaylist) => segments.at(-1)!.sequence

const PROBES: readonly Probe[] = [
  onPlaylist('gzip', 'gzip'),
  onPlaylist('identity', 'identity'),
  onSegment({ role: 'head', method: 'HEAD' }),
  onSegment({ role: 'range', headers: { range: 'bytes=0-187' } }),
  onSegment({
    role: 'preflight',
    method: 'OPTIONS',
    headers: {
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'range',
    },
  }),
  (playlistUrl) => ({
    role: 'unknown',
    url: new URL('millrace-check-unlisted.ts', playlistUrl).href,
    playlistUrl,
  }),
  onDirectives('old-sequence', ({ segments }) => ({ sequence: segments[0]!.sequence })),
  onDirectives('part-without-sequence', () => ({ part: 0 })),
  onDirectives('far-ahead', (playlist) => ({ sequence: lastSequence(playlist) + 10 })),
]

/** Input: each version with its time; output: at most one probe. */
export class ProbePlan {
  readonly #url: string
  readonly #intervalMs: number
  #waiting: readonly Probe[] = Array.from({ length: ROUNDS }, () => PROBES).flat()
  #nextMs = 0

  constructor(url: string, seconds: number) {
    this.#url = url
    this.#intervalMs = (seconds * 1000 * SHARE) / this.#waiting.length
  }

  next(playlist: ParsedPlaylist, nowMs: number): Request | undefined {
    if (nowMs < this.#nextMs) return undefined
    this.#nextMs = nowMs + this.#intervalMs
    while (this.#waiting.length > 0) {
      const [probe, ...rest] = this.#waiting
      this.#waiting = rest
      const request = probe!(this.#url, playlist)
      if (request !== undefined) return request
    }
    return undefined
  }

  /** All probes once, for a playlist that does not change any more. */
  once(playlist: ParsedPlaylist): Request[] {
    this.#waiting = []
    return PROBES.flatMap((probe) => probe(this.#url, playlist) ?? [])
  }
}

interface RemovedSegment {
  readonly segment: ParsedSegment
  readonly atMs: number
}

/** Chooses removed segments and when to ask for them (RFC 8216 6.2.2). Input: each version with its time. */
export class RemovalPlan {
  readonly #url: string
  readonly #intervalMs: number
  #due: RemovedSegment | undefined
  #count = 0
  #nextMs = 0
  #longestSec = 0
  #listedAtMs = 0

  constructor(url: string, seconds: number) {
    this.#url = url
    this.#intervalMs = (seconds * 1000) / MAX_GONE
  }

  /** @param sentAtMs  time of the request for `after` */
  next(
    before: ParsedPlaylist,
    after: ParsedPlaylist,
    { sentAtMs, nowMs }: { readonly sentAtMs: number; readonly nowMs: number },
  ): Request | undefined {
    const listedAtMs = this.#listedAtMs
    this.#listedAtMs = sentAtMs
    const durationSec = totalSec(after.segments)
    this.#longestSec = Math.max(this.#longestSec, durationSec || 0)
    const due = this.#due
    if (due !== undefined && nowMs >= due.atMs) {
      this.#due = undefined
      return { role: 'gone', url: due.segment.url!, playlistUrl: this.#url }
    }
    if (due !== undefined || this.#count === MAX_GONE || nowMs < this.#nextMs) return undefined
    const removed = before.segments.findLast(
      ({ sequence, url, gap }) => sequence < after.mediaSequence && url !== undefined && !gap,
    )
    if (removed === undefined || removed.byteRange !== undefined) return undefined
    this.#count++
    this.#nextMs = nowMs + this.#intervalMs
    const availableMs = (removed.durationSec + this.#longestSec) * 1000
    this.#due = { segment: removed, atMs: listedAtMs + availableMs * GONE_SHARE }
    return undefined
  }
}
