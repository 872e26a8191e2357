/**
 * What an edge reads from a media playlist to answer requests that wait for media (RFC 8216bis 6.2.5).
 *
 * @module
 */
import type { PlaylistPosition } from '../hls/store/delivery-directives.ts'

export interface PlaylistFacts {
  readonly targetDurationSec: number
  /** Whether the playlist has ended. */
  readonly ended: boolean
  /** Undefined for a playlist that does not offer to wait. */
  readonly position: PlaylistPosition | undefined
  /** Names of its parts, but for gaps. */
  readonly parts: ReadonlySet<string>
  /** Names of its init segments. */
  readonly maps: ReadonlySet<string>
}

const PART = /^#EXT-X-PART:(?!.*GAP=YES).*URI="([^"]+)"/gm
const MAP = /^#EXT-X-MAP:.*URI="([^"]+)"/gm

/** @param text  any playlist of Millrace; a multivariant playlist has neither position nor end */
export function readPlaylist(text: string): PlaylistFacts {
  const number = (tag: RegExp) => Number(tag.exec(text)?.[1] ?? NaN)
  const names = (tag: RegExp) => new Set(Array.from(text.matchAll(tag), ([, name]) => name!))
  return {
    targetDurationSec: number(/^#EXT-X-TARGETDURATION:(\d+)/m) || 1,
    ended: /^#EXT-X-ENDLIST/m.test(text),
    position: text.includes('CAN-BLOCK-RELOAD=YES') ? readPosition(text) : undefined,
    parts: names(PART),
    maps: names(MAP),
  }
}

/**
 * Time at the end of the listed media, in milliseconds since 1970.
 *
 * @returns undefined for a playlist without EXT-X-PROGRAM-DATE-TIME
 */
export function endOfMedia(text: string): number | undefined {
  const dated = text.slice(text.lastIndexOf('#EXT-X-PROGRAM-DATE-TIME:'))
  const startMs = Date.parse(/^#EXT-X-PROGRAM-DATE-TIME:(.*)/.exec(dated)?.[1] ?? '')
  if (Number.isNaN(startMs)) return undefined
  const segments = [...dated.matchAll(/^#EXTINF:([\d.]+)/gm)]
  // The parts of a complete segment come before its EXTINF.
  const open = dated.slice(segments.at(-1)?.index ?? 0)
  const parts = open.matchAll(/^#EXT-X-PART:(?:.*,)?DURATION=([\d.]+)/gm)
  const durations = [...segments, ...parts].map(([, duration]) => Number(duration))
  return startMs + durations.reduce((sum, duration) => sum + duration, 0) * 1000
}

function readPosition(text: string): PlaylistPosition | undefined {
  const hint = /^#EXT-X-PRELOAD-HINT:.*URI="([^"]+)"/m.exec(text)?.[1]
  const partTargetSec = Number(/PART-TARGET=([\d.]+)/.exec(text)?.[1])
  const first = Number(/^#EXT-X-MEDIA-SEQUENCE:(\d+)/m.exec(text)?.[1] ?? 0)
  if (hint === undefined || !(partTargetSec > 0)) return undefined
  // The parts of a segment come before its EXTINF.
  const bySegment = text.split(/^#EXTINF:/m).map((lines) => lines.match(/^#EXT-X-PART:/gm)?.length)
  return {
    mediaSequence: first + bySegment.length - 2,
    parts: bySegment.at(-2) ?? 0,
    nextParts: bySegment.at(-1) ?? 0,
    partTargetSec,
    hint,
    skippable: text.includes('CAN-SKIP-UNTIL='),
  }
}
