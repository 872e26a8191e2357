/**
 * Facts about a segment or part from its bytes.
 *
 * @module
 */
import type { MediaFacts } from './inspected-media.ts'

export interface MediaContext {
  /** METHOD of EXT-X-KEY; undefined without encryption. */
  readonly encryption: string | undefined
  /** Init segment of EXT-X-MAP; undefined without one. */
  readonly init: Buffer | undefined
}

export function inspectMedia(body: Buffer, { encryption }: MediaContext): MediaFacts {
  const container = encryption === undefined ? 'unknown' : 'encrypted'
  return { container, sizeBytes: body.length, tracks: [], counters: new Map(), faults: [] }
}
