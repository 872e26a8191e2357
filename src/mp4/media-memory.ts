/**
 * Memory of fragments: bytes are copied once, into chunks that are filled from front to back.
 *
 * @module
 */
import { totalBytes } from '../binary/total-bytes.ts'

/** Where a `FragmentWriter` puts its bytes. */
export interface MediaMemory {
  /** Appends copies. */
  append(chunks: readonly Uint8Array[]): void
  /** Overwrites what was appended since the latest `take`, from `fromEnd` bytes before its end. */
  overwrite(fromEnd: number, bytes: Uint8Array): void
  /**
   * @returns what was appended since the latest `take`, in order: views whose bytes never change and belong to the
   *   caller; the chunk behind the last view may hold later media as well
   */
  take(): Buffer[]
}

/** Overwrites bytes in the concatenation of the views, from `fromEnd` bytes before its end. */
export function overwriteViews(
  views: readonly Uint8Array[],
  fromEnd: number,
  bytes: Uint8Array,
): void {
  let at = totalBytes(views) - fromEnd
  for (const view of views) {
    const skipped = Math.max(0, -at)
    if (at < view.length && skipped < bytes.length)
      view.set(bytes.subarray(skipped, view.length - at), Math.max(0, at))
    at -= view.length
  }
}
