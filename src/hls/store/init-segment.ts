/**
 * Media initialization section (RFC 8216bis 3.1.2): the format of the segments whose EXT-X-MAP names it.
 *
 * @module
 */

export interface InitSegment {
  /** Unique in the process: it contains a hash of the bytes. */
  readonly uri: string
  readonly bytes: Buffer
}
