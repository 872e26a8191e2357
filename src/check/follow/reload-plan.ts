/**
 * When and how a player reloads a media playlist (RFC 8216bis 6.3.4, 6.2.5).
 *
 * @module
 */
import { withDirectives } from '../playlist/directives.ts'
import { liveEdge, nextMedia, type ParsedPlaylist } from '../playlist/media-playlist.ts'
import { GZIP, HEADERS_TIMEOUT_MS, type Request } from './http-client.ts'

/** State after a reload. */
export interface Reloaded {
  readonly role: 'playlist' | 'blocking' | 'delta'
  /** Newest version; undefined before the first. */
  readonly playlist: ParsedPlaylist | undefined
  /** Whether the reload brought new media. */
  readonly advanced: boolean
  /** Reloads in a row without a playlist, this one included. */
  readonly failures: number
  /** Number of reloads so far. */
  readonly count: number
}

interface Reload {
  readonly request: Request & { readonly role: Reloaded['role'] }
  /** From the time at which the previous reload was sent, and from its end. */
  readonly afterSentMs: number
  readonly afterEndMs: number
}

/** Every how many reloads a delta update is asked for, where it is offered. */
const DELTA_EVERY = 8

/** Shortest interval of reloads. */
const MIN_INTERVAL_MS = 50

const RETRY_MS = 1000

/** Time beyond three target durations after which a held request fails. */
const HELD_MARGIN_MS = 5000

/** Request that waits for nothing. */
export function plainReload(url: string): Reload['request'] {
  return { role: 'playlist', url, headers: GZIP }
}

export function nextReload(url: string, reloaded: Reloaded): Reload {
  const { playlist, role, advanced, failures } = reloaded
  const targetMs = (playlist?.targetSec || 2) * 1000
  const plain = plainReload(url)
  if (playlist === undefined || failures > 0) {
    const afterEndMs = Math.min(targetMs, RETRY_MS * failures)
    return { request: plain, afterSentMs: MIN_INTERVAL_MS, afterEndMs }
  }
  if (playlist.serverControl?.canBlockReload !== true) {
    return { request: plain, afterSentMs: advanced ? targetMs : targetMs / 2, afterEndMs: 0 }
  }
  // The full playlist of the same version, for the comparison with the merged one.
  if (role === 'delta') return { request: plain, afterSentMs: 0, afterEndMs: 0 }
  return {
    request: { ...plain, ...blocking(url, playlist, reloaded.count), timeoutMs: heldMs(targetMs) },
    afterSentMs: MIN_INTERVAL_MS,
    // Do not flood a server that responds without new media.
    afterEndMs: role === 'blocking' && !advanced ? RETRY_MS : 0,
  }
}

/** Longest time to the headers of a held request. */
function heldMs(targetMs: number): number {
  return Math.max(HEADERS_TIMEOUT_MS, Math.min(60_000, 3 * targetMs + HELD_MARGIN_MS))
}

/** Request that waits for the next part, or for the next segment. */
function blocking(url: string, playlist: ParsedPlaylist, count: number) {
  const hasParts = playlist.partTargetSec !== undefined
  const next = hasParts ? nextMedia(playlist) : { sequence: liveEdge(playlist).sequence + 1 }
  const offersDelta = playlist.serverControl?.canSkipUntilSec !== undefined
  const skip = offersDelta && count % DELTA_EVERY === 0
  return {
    role: skip ? ('delta' as const) : ('blocking' as const),
    url: withDirectives(url, { ...next, skip }),
  }
}
