/**
 * Bodies of other nodes' replies in memory. Each body, and all that are on their way, are limited.
 *
 * @module
 */
import type { Readable } from 'node:stream'

export interface ReplyLimits {
  /** Maximum size of a body. */
  readonly maxBytes: number
  /** Maximum size of all bodies that are being read, beside one. */
  readonly maxTotalBytes: number
}

/** One instance for all replies of a kind. */
export class ReplyReader {
  readonly #limits: ReplyLimits
  #totalBytes = 0

  constructor(limits: ReplyLimits) {
    this.#limits = limits
  }

  /**
   * Reads a body into one piece: views of the memory that was read would keep more than the file, and cost a write each.
   *
   * @param announcedBytes  Content-Length; 0 for an unknown one
   * @throws {Error} if the body, or all together, are too large, or if it ends early; the body is destroyed
   */
  async read(body: Readable, announcedBytes: number): Promise<Buffer> {
    const { maxBytes, maxTotalBytes } = this.#limits
    const chunks: Buffer[] = []
    let sizeBytes = 0
    let reservedBytes = 0
    const reserve = (neededBytes: number) => {
      const otherBytes = this.#totalBytes - reservedBytes
      const hasRoom = otherBytes === 0 || otherBytes + neededBytes <= maxTotalBytes
      if (neededBytes > maxBytes || !hasRoom) {
        throw new Error('too many bytes on the way from other nodes')
      }
      this.#totalBytes = otherBytes + neededBytes
      reservedBytes = neededBytes
    }
    try {
      reserve(announcedBytes)
      for await (const chunk of body as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length
        if (sizeBytes > reservedBytes) reserve(sizeBytes)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks)
    } catch (error) {
      body.on('error', () => undefined).destroy()
      throw error
    } finally {
      this.#totalBytes -= reservedBytes
    }
  }
}
