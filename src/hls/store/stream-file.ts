/**
 * File of a stream for delivery: a playlist or a segment.
 *
 * @module
 */

export interface StreamFile {
  readonly contentType: string
  /** Bytes in order. Shared by all readers; must not be changed. */
  readonly chunks: readonly Buffer[]
  /** Strong ETag without quotes: changes whenever the bytes do. */
  readonly version: string
  /** Lifetime in caches, in seconds. */
  readonly maxAgeSec: number
  /** Whether the bytes never change. Such a file supports byte ranges and is never compressed. */
  readonly immutable: boolean
}

/** Cache lifetimes are in target durations (RFC 8216bis appendix B.1). */
const KINDS = {
  'media-playlist': {
    contentType: 'application/vnd.apple.mpegurl',
    lifetime: 0.5,
    immutable: false,
  },
  'multivariant-playlist': {
    contentType: 'application/vnd.apple.mpegurl',
    lifetime: 1,
    immutable: false,
  },
  segment: { contentType: 'video/mp2t', lifetime: 6, immutable: true },
}

/** @param file.targetDurationSec  EXT-X-TARGETDURATION; until that is fixed, the duration of the segment itself */
export function createStreamFile(
  kind: keyof typeof KINDS,
  file: Pick<StreamFile, 'chunks' | 'version'> & { readonly targetDurationSec: number },
): StreamFile {
  const { chunks, version, targetDurationSec } = file
  const { contentType, lifetime, immutable } = KINDS[kind]
  const maxAgeSec = Math.floor(targetDurationSec * lifetime)
  return { contentType, chunks, version, maxAgeSec, immutable }
}
