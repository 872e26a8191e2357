/**
 * Versions of one media playlist as they were loaded: which of them are new, how long each stayed the newest, and until
 * when their media has to be available.
 *
 * @module
 */
import type { Exchange, Reply } from '../exchange.ts'
import { withoutDirectives } from '../playlist/directives.ts'
import {
  comparePositions,
  liveEdge,
  mergeDelta,
  nextMedia,
  parseMediaPlaylist,
  totalSec,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import { findTag } from '../playlist/tag-reader.ts'
import type { Occurrence, StaleTime, Version } from '../rules/subjects.ts'

/** Versions whose text is kept, to recognize an older one. */
const MAX_TEXTS = 8

/** Maximum network latency of a response that was held until there was something new. */
const MAX_LATENCY_MS = 500

/** Inputs: `add` each response that may have a version. */
export class PlaylistHistory {
  readonly #url: string
  readonly #availability = new MediaAvailability()
  readonly #segmentStaleness = new StalenessMeter()
  readonly #partStaleness = new StalenessMeter()
  /** Texts of the last versions, newest last. */
  #texts: string[] = []
  #version: Version | undefined

  /** @param url  without directives */
  constructor(url: string) {
    this.#url = url
  }

  get newest(): ParsedPlaylist | undefined {
    return this.#version?.playlist
  }

  get version(): Version | undefined {
    return this.#version
  }

  /** Whether the request is for media that still has to be available when its response begins. */
  isDue({ url }: Exchange, { headersAtMs }: Reply): boolean {
    return this.#availability.isDue(url, headersAtMs)
  }

  *add(exchange: Exchange, reply: Reply): Iterable<Occurrence> {
    const before = this.#version
    const text = reply.body.toString()
    const isSame = before?.playlist.text === text
    const playlist = isSame ? before.playlist : this.#parse(text, reply)
    if (playlist === undefined) return
    if (before !== undefined && !isSame) {
      const isKnown = this.#texts.includes(text)
      if (isOlder(playlist, before.playlist, isKnown)) {
        // A response that another one overtook says nothing about the server.
        if (exchange.sentAtMs < before.atMs) return
        yield ['older', { newest: before.playlist, older: playlist }]
        return
      }
      if (exchange.role === 'playlist' && this.#isDeltaBefore(playlist)) {
        yield ['delta', { merged: before.playlist, full: playlist }]
      }
    }
    this.#version = {
      playlist,
      sentAtMs: exchange.sentAtMs,
      atMs: reply.endedAtMs,
      ...(before && { before: withoutBefore(before) }),
    }
    this.#availability.add(playlist, exchange.sentAtMs)
    if (!isSame) {
      this.#texts = [...this.#texts, text].slice(-MAX_TEXTS)
      yield ['text', { playlist }]
      yield ['playlist', { playlist }]
    }
    if (before !== undefined && !isSame) {
      yield ['update', { before: before.playlist, after: playlist }]
    }
    const next = nextMedia(playlist)
    const withoutSegmentMs = this.#segmentStaleness.add(next.sequence, exchange, reply)
    const withoutPartMs = this.#partStaleness.add(`${next.sequence}.${next.part}`, exchange, reply)
    const stale = { withoutSegmentMs, withoutPartMs }
    yield ['reload', { exchange, reply, playlist, before: before?.playlist, ...stale }]
  }

  /** @returns the full playlist; undefined for a delta update that skips what is not known */
  #parse(text: string, { url }: Reply): ParsedPlaylist | undefined {
    const read = parseMediaPlaylist(text, withoutDirectives(url), this.#url)
    if (read.skipped === 0) return read
    return this.newest === undefined ? undefined : mergeDelta(this.newest, read)
  }

  /** Whether the newest version was merged from a delta update and has the edge of the full playlist. */
  #isDeltaBefore(full: ParsedPlaylist): boolean {
    const { newest } = this
    if (newest === undefined || findTag(newest, 'EXT-X-SKIP') === undefined) return false
    return comparePositions(liveEdge(newest), liveEdge(full)) === 0
  }
}

/** The version without the one before, which would keep all of them in memory. */
function withoutBefore({ playlist, sentAtMs, atMs }: Version): Omit<Version, 'before'> {
  return { playlist, sentAtMs, atMs }
}

/** Whether a playlist is older than the newest version, and not of a server that restarted. */
function isOlder(playlist: ParsedPlaylist, newest: ParsedPlaylist, isKnown: boolean): boolean {
  const ahead = comparePositions(nextMedia(newest), nextMedia(playlist))
  if (ahead < 0) return false
  if (ahead === 0 || isKnown) return isKnown
  const first = newest.segments[0]?.sequence ?? 0
  return playlist.segments.some(({ sequence, url, duration, parts: [part] }) => {
    const known = newest.segments[sequence - first]
    const isSameSegment = url !== undefined && known?.url === url && known.duration === duration
    return isSameSegment || (part !== undefined && known?.parts[0]?.url === part.url)
  })
}

/** Measures for how long there was nothing new. */
class StalenessMeter {
  #newest: string | number | undefined
  #arrivedMs = 0
  #staleMs = 0

  /** @returns time for which what was the newest before this response stayed the newest */
  add(newest: string | number, { role, sentAtMs }: Exchange, reply: Reply): StaleTime {
    const before = this.#staleMs
    const isNew = newest !== this.#newest
    const wasHeld = role === 'blocking' && reply.headersAtMs - sentAtMs > MAX_LATENCY_MS
    // A response with something new proves that there was nothing before only if it was held for it.
    const heldUntilMs = wasHeld ? reply.headersAtMs - MAX_LATENCY_MS : this.#arrivedMs + before
    const provedMs = isNew ? heldUntilMs : sentAtMs
    const now = this.#newest === undefined ? 0 : Math.max(before, provedMs - this.#arrivedMs)
    this.#staleMs = isNew ? 0 : now
    if (isNew) this.#arrivedMs = reply.endedAtMs
    this.#newest = newest
    return [before, now]
  }
}

/** Input: each version with the time of its request; times are in milliseconds of one clock. */
class MediaAvailability {
  /** By URL. */
  readonly #untilMs = new Map<string, number>()
  #longestSec = 0

  add({ segments, targetSec }: ParsedPlaylist, sentAtMs: number): void {
    const durationSec = totalSec(segments)
    this.#longestSec = Math.max(this.#longestSec, durationSec || 0)
    for (const [url, untilMs] of this.#untilMs) if (untilMs < sentAtMs) this.#untilMs.delete(url)
    for (const { url, map, parts, ...segment } of segments) {
      const untilMs = sentAtMs + (segment.durationSec + this.#longestSec) * 1000
      if (url !== undefined) this.#untilMs.set(url, untilMs)
      if (map !== undefined) this.#untilMs.set(map.url, untilMs)
      for (const part of parts) this.#untilMs.set(part.url, sentAtMs + 3 * targetSec * 1000)
    }
  }

  /** Whether media has to be available at that time. */
  isDue(url: string, atMs: number): boolean {
    return atMs <= (this.#untilMs.get(url) ?? -Infinity)
  }
}
