/**
 * File of a stream for delivery: a playlist, a segment or a part.
 *
 * @module
 */

import { isAudioRendition, isCmafRendition, type RenditionName } from '../file-names.ts'

/** A file of a stream: a playlist, segment, part, init segment or preview. */
export interface StreamFile {
  readonly contentType: string
  /** Bytes in order. Shared by all readers; must not be changed. */
  readonly chunks: readonly Buffer[]
  /** The same bytes compressed, where an origin has done it; otherwise they are compressed when a client asks. */
  readonly gzip?: readonly Buffer[]
  /** Strong ETag without quotes: changes whenever the bytes do. */
  readonly version: string
  /** Lifetime in caches, in seconds. */
  readonly maxAgeSec: number
  /** Whether the bytes never change. Such a file supports byte ranges and is never compressed. */
  readonly immutable: boolean
  /** URL of the bytes, if they are elsewhere: there are no `chunks`. */
  readonly location?: string
  /** Limits for a request that waits for this playlist; undefined if the playlist does not offer to wait. */
  readonly blocking?: BlockingLimits
}

/** Limits on responses for which a playlist request waits. */
export interface BlockingLimits {
  /** Lifetime of the reply in shared caches, in seconds. */
  readonly maxAgeSec: number
  /** Longest wait that a client must expect, in milliseconds (RFC 8216bis 6.2.5.2). */
  readonly maxWaitMs: number
}

export const PLAYLIST_TYPE = 'application/vnd.apple.mpegurl'

/** @returns Content-Type of the media of a rendition (RFC 8216bis 4, ISO/IEC 23000-19 7.2) */
export function mediaTypeOf(rendition: RenditionName): string {
  if (!isCmafRendition(rendition)) return 'video/mp2t'
  return isAudioRendition(rendition) ? 'audio/mp4' : 'video/mp4'
}

/** Cache lifetimes are in target durations (RFC 8216bis appendix B.1). */
const KINDS = {
  'media-playlist': { lifetime: 0.5, immutable: false },
  'multivariant-playlist': { lifetime: 1, immutable: false },
  segment: { lifetime: 6, immutable: true },
  part: { lifetime: 6, immutable: true },
  // Longer than the segments that need it are listed.
  init: { lifetime: 300, immutable: true },
  preview: { lifetime: 1, immutable: false },
}

/** Lifetime of a blocking reply in shared caches, in target durations (RFC 8216bis appendix B.1). */
const BLOCKING_LIFETIME = 6

/** Longest wait in target durations (RFC 8216bis 6.2.5.2). */
const MAX_WAIT_TARGETS = 3

/**
 * @param file.rendition  whose media it is; default: the main one
 * @param file.targetDurationSec  EXT-X-TARGETDURATION; until that is fixed, the duration of the media itself
 */
export function createStreamFile(
  kind: keyof typeof KINDS,
  file: Pick<StreamFile, 'chunks' | 'version' | 'blocking'> & {
    readonly rendition?: RenditionName
    readonly targetDurationSec: number
  },
): StreamFile {
  const { chunks, version, rendition = 'main', targetDurationSec, blocking } = file
  const { lifetime, immutable } = KINDS[kind]
  const contentType = kind.endsWith('-playlist') ? PLAYLIST_TYPE : mediaTypeOf(rendition)
  const maxAgeSec = Math.floor(targetDurationSec * lifetime)
  return { contentType, chunks, version, maxAgeSec, immutable, ...(blocking && { blocking }) }
}

export function blockingLimits(targetDurationSec: number): BlockingLimits {
  return {
    maxAgeSec: BLOCKING_LIFETIME * targetDurationSec,
    maxWaitMs: MAX_WAIT_TARGETS * targetDurationSec * 1000,
  }
}
