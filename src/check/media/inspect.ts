/**
 * Facts about a segment or part from its bytes.
 *
 * @module
 */
import { inspectFragments } from './fragments.ts'
import type { Container, MediaFacts } from './media-facts.ts'
import { inspectPackedAudio } from './audio.ts'
import { inspectTransportStream, isTransportStream } from './transport-stream.ts'

interface MediaContext {
  /** METHOD of EXT-X-KEY; undefined without encryption. */
  readonly encryption: string | undefined
  /** Init segment of EXT-X-MAP; undefined without one. */
  readonly init: Buffer | undefined
}

/** Types of the first box of a segment or part. */
const FIRST_BOXES = new Set([
  'ftyp',
  'styp',
  'moof',
  'moov',
  'sidx',
  'ssix',
  'emsg',
  'prft',
  'free',
  'skip',
  'mdat',
  'uuid',
])

/** Accepts any bytes. Encrypted media is recognized and not inspected. */
export function inspectMedia(bytes: Buffer, { encryption, init }: MediaContext): MediaFacts {
  if (encryption !== undefined) return withoutTracks('encrypted', bytes)
  const movie = init !== undefined && isMp4(init) ? init : undefined
  if (isMp4(bytes)) return inspectFragments(bytes, movie)
  if (isTransportStream(bytes)) {
    return inspectTransportStream(bytes, movie === undefined ? init : undefined)
  }
  const audio = inspectPackedAudio(bytes)
  if (audio !== undefined) return audio
  if (/^(\u00ef\u00bb\u00bf)?WEBVTT/.test(bytes.toString('latin1', 0, 9))) {
    return withoutTracks('webvtt', bytes)
  }
  const text = `the first bytes are ${bytes.toString('hex', 0, 8) || 'missing'}`
  return { ...withoutTracks('unknown', bytes), faults: [{ kind: 'format', text }] }
}

function isMp4(bytes: Buffer): boolean {
  return FIRST_BOXES.has(bytes.toString('latin1', 4, 8))
}

function withoutTracks(container: Container, { length }: Buffer): MediaFacts {
  return { container, sizeBytes: length, tracks: [], counters: new Map(), faults: [] }
}
