/**
 * Media of a playlist by the request that loaded it.
 *
 * @module
 */
import type { Exchange } from '../exchange.ts'
import { formatRange } from './byte-range.ts'
import type { ListedPart, ListedSegment, MediaPlaylist } from './media-playlist.ts'

export interface FoundMedia {
  readonly segment: ListedSegment
  /** Undefined if the request was for the whole segment. */
  readonly part: ListedPart | undefined
}

/** Newest segment or part with the URL of a request and, if it is a byte range of a resource, its range. */
export function findMedia(
  { segments }: MediaPlaylist,
  { url, headers }: Pick<Exchange, 'url' | 'headers'>,
): FoundMedia | undefined {
  const isAsked = (listed: Pick<ListedSegment, 'url' | 'byteRange'>) => {
    const { byteRange: range } = listed
    const isRange = range === undefined || headers['range'] === formatRange(range)
    return listed.url === url && isRange
  }
  for (const segment of segments.toReversed()) {
    if (isAsked(segment)) return { segment, part: undefined }
    const part = segment.parts.find(isAsked)
    if (part !== undefined) return { segment, part }
  }
  return undefined
}
