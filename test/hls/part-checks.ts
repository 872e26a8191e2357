/**
 * Rules that the parts and segments of a packager keep, whatever the source.
 *
 * @module
 */
import { isCmafRendition } from '../../src/hls/file-names.ts'
import type { Part, Segment } from '../../src/hls/store/segment.ts'

/** `part` and `segment` with each output in order, `end` after the last; each throws where a rule is broken. */
export class PartChecks {
  readonly #targetSec: number | undefined
  /** Newest part of each rendition, that of the first one first. */
  readonly #serials = new Map<string, number>()
  readonly #open = new Map<string, Part[]>()
  /** Newest segment of each rendition. */
  readonly #segments = new Map<string, Segment>()
  parts = 0

  /** @param targetSec  PART-TARGET; undefined for segments without parts */
  constructor(targetSec: number | undefined) {
    this.#targetSec = targetSec
  }

  part(part: Part): void {
    const targetSec = this.#targetSec
    const { rendition, serial, durationSec, discontinuity } = part
    if (targetSec === undefined) throw new Error(`${part.uri} without PART-TARGET`)
    if (this.#segments.size === 0) throw new Error(`${part.uri} in the first segment`)
    if (!isCmafRendition(rendition)) throw new Error(`${part.uri} is of transport stream`)
    const known = this.#serials.get(rendition)
    // The number behind a timeline was hinted in it.
    const isNext = serial === (known ?? -1) + 1 || (discontinuity && serial === known! + 2)
    if (known !== undefined && !isNext) throw new Error(`${part.uri} follows ${known}`)
    const [[first, newest] = [rendition, serial]] = this.#serials
    if (first !== rendition && newest !== serial) {
      throw new Error(`${part.uri} is not in the row of ${newest}`)
    }
    this.#serials.set(rendition, serial)
    if (!(durationSec > 0 && durationSec <= targetSec + 1e-9)) {
      throw new Error(`${part.uri} lasts ${durationSec} s of ${targetSec} s`)
    }
    const open = this.#open.get(rendition) ?? []
    this.#open.set(rendition, open)
    open.push(part)
    this.parts++
  }

  segment(segment: Segment): void {
    const { rendition, uri, parts } = segment
    const open = this.#open.get(rendition) ?? []
    this.#open.delete(rendition)
    const previous = this.#segments.get(rendition) ?? segment
    this.#segments.set(rendition, segment)
    if (previous !== segment && previous.nextDateTimeMs !== announcedDate(segment)) {
      throw new Error(`${uri} was announced for ${previous.nextDateTimeMs}`)
    }
    if (parts.length !== open.length || parts.some((part, index) => part !== open[index])) {
      throw new Error(`${uri} has ${parts.length} parts, not ${open.length}`)
    }
    if (parts.length === 0) return
    const sumSec = parts.reduce((sum, part) => sum + Number(part.durationSec.toFixed(5)), 0)
    if (Math.abs(sumSec - Number(segment.durationSec.toFixed(5))) > 50e-6 + parts.length * 5e-6) {
      throw new Error(`${uri} lasts ${segment.durationSec} s, its parts ${sumSec} s`)
    }
    const chunks = parts.flatMap((part) => part.chunks)
    if (!Buffer.concat(chunks).equals(segment.bytes)) throw new Error(`${uri} has other bytes`)
    const minSec = 0.85 * this.#targetSec!
    for (const [index, part] of parts.slice(0, -1).entries()) {
      const isExempt =
        part.independent || part.chunks.length === 0 || parts[index + 1]!.chunks.length === 0
      if (part.durationSec < minSec - 1e-9 && !isExempt) {
        throw new Error(`${part.uri} lasts ${part.durationSec} s, less than ${minSec} s`)
      }
    }
  }

  end(): void {
    if (new Set(this.#serials.values()).size > 1) throw new Error('renditions end apart')
  }
}

/** Date that the segment before announces. */
function announcedDate({ discontinuity, programDateTimeMs }: Segment): number | undefined {
  return discontinuity ? undefined : programDateTimeMs
}
