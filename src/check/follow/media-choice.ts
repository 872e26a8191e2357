/**
 * Which media of a playlist version a player would load.
 *
 * @module
 */
import {
  formatRange,
  isComplete,
  MAX_MAPS,
  placeOf,
  type ParsedSegment,
  type Located,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import type { Request } from './http-client.ts'

/** Complete segments that a player without low latency starts before the live edge (RFC 8216bis 6.3.3). */
const START_SEGMENTS = 3

/** In low latency, every tenth segment is loaded whole besides its parts. */
const WHOLE_EVERY = 10

/** Maximum media of one version. */
const MAX_NEW_SEGMENTS = 5
const MAX_NEW_PARTS = 20

/** Segments of an ended playlist that are loaded: as many from its start and its end, and others between. */
const SAMPLE_EDGE = 3
const SAMPLE_BETWEEN = 6

type MediaRequest = Request & { readonly role: 'segment' | 'part' | 'init' }

/** Input: each version, delta updates merged. */
export class MediaChoice {
  readonly #playlistUrl: string
  /** Media that was chosen or skipped, and is listed. */
  #known: ReadonlySet<string> = new Set()
  /** Init segments that were chosen and are kept, newest last. */
  #inits: readonly string[] = []
  /** Newest segment of which each part was chosen from the first. */
  #firstWhole = 0
  #isFirst = true

  constructor(playlistUrl: string) {
    this.#playlistUrl = playlistUrl
  }

  /** @returns requests in the order of the media */
  choose(playlist: ParsedPlaylist): MediaRequest[] {
    if (playlist.ended && this.#isFirst) return this.#requestAll(this.#sample(playlist))
    const chosen = this.#requestAll(
      followsParts(playlist) ? this.#chooseParts(playlist) : this.#chooseSegments(playlist),
    )
    this.#known = new Set(
      playlist.segments.flatMap((segment) => [
        ...(isComplete(segment) ? [placeOf(segment)] : []),
        ...segment.parts.map(placeOf),
      ]),
    )
    this.#isFirst = false
    return chosen
  }

  /** Marks a hinted part as loaded, so that `choose` skips it. */
  addHint(url: string): void {
    this.#known = new Set([...this.#known, placeOf({ url, byteRange: undefined })])
  }

  #sample({ segments }: ParsedPlaylist): Chosen[] {
    this.#isFirst = false
    const media = segments.filter((segment) => isComplete(segment) && !segment.gap)
    const step = Math.max(1, Math.ceil((media.length - 2 * SAMPLE_EDGE) / SAMPLE_BETWEEN))
    const sample = media.filter(
      (_, index) =>
        index < SAMPLE_EDGE ||
        index >= media.length - SAMPLE_EDGE ||
        (index - SAMPLE_EDGE) % step === 0,
    )
    return sample.flatMap(wholeOf)
  }

  #chooseSegments({ segments }: ParsedPlaylist): Chosen[] {
    return segments
      .filter((segment) => isComplete(segment) && !this.#known.has(placeOf(segment)))
      .slice(this.#isFirst ? -START_SEGMENTS : -MAX_NEW_SEGMENTS)
      .flatMap(wholeOf)
  }

  #chooseParts({ segments }: ParsedPlaylist): Chosen[] {
    const open = segments.filter((segment) => !isComplete(segment))
    if (this.#isFirst) {
      const newest = segments.findLast(isComplete)
      this.#firstWhole = (newest?.sequence ?? -1) + 1
      return [
        ...(newest === undefined ? [] : wholeOf(newest)),
        ...open.flatMap((segment) => this.#partsOf(segment)),
      ]
    }
    const chosen: Chosen[] = []
    for (const segment of segments) {
      chosen.push(...this.#partsOf(segment))
      if (!isComplete(segment) || this.#known.has(placeOf(segment))) continue
      const isWhole = (segment.sequence - this.#firstWhole) % WHOLE_EVERY === 0
      // Without parts, as after a gap, the segment is all that there is.
      if (isWhole || segment.parts.length === 0) chosen.push(...wholeOf(segment))
    }
    return chosen.slice(-MAX_NEW_PARTS)
  }

  #partsOf(segment: ParsedSegment): Chosen[] {
    return segment.parts
      .filter((part) => !part.gap && !this.#known.has(placeOf(part)))
      .map((part) => ({ role: 'part', media: part, segment }))
  }

  /** Requests media, each after its init segment if that is not kept. */
  #requestAll(chosen: readonly Chosen[]): MediaRequest[] {
    return chosen.flatMap(({ role, media, segment }) => [
      ...this.#requestInit(segment),
      this.#request(role, media),
    ])
  }

  #requestInit({ map }: ParsedSegment): MediaRequest[] {
    if (map === undefined || this.#inits.includes(placeOf(map))) return []
    this.#inits = [...this.#inits, placeOf(map)].slice(-MAX_MAPS)
    return [this.#request('init', map)]
  }

  #request(role: MediaRequest['role'], { url = '', byteRange }: Located): MediaRequest {
    return {
      role,
      url,
      playlistUrl: this.#playlistUrl,
      ...(byteRange !== undefined && { headers: { range: formatRange(byteRange) } }),
    }
  }
}

/** Segment or part to load, with the segment whose init segment it needs. */
interface Chosen {
  readonly role: 'segment' | 'part'
  readonly media: Located
  readonly segment: ParsedSegment
}

function wholeOf(segment: ParsedSegment): Chosen[] {
  return segment.gap ? [] : [{ role: 'segment', media: segment, segment }]
}

/** Whether parts are loaded as they appear: players do so where reloads can wait for them. */
export function followsParts({ partTargetSec, serverControl, ended }: ParsedPlaylist): boolean {
  return partTargetSec !== undefined && serverControl?.canBlockReload === true && !ended
}
