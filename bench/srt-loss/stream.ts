/**
 * Payloads that tell their place, so that whoever gets some of them knows which are missing.
 *
 * @module
 */

export const PAYLOAD_BYTES = 1316

const MARK = 0x4d496c6c

/** @returns the n-th payload: a mark, its number, and filler */
export function payloadOf(number: number): Buffer {
  const payload = Buffer.alloc(PAYLOAD_BYTES, 0xff)
  payload.writeUInt32BE(MARK, 0)
  payload.writeUInt32BE(number, 4)
  return payload
}

/** Reads payloads from a byte stream cut anywhere, and counts those below `sent` that came. */
export class Tally {
  readonly #came: Uint8Array
  #rest = Buffer.alloc(0)

  constructor(sent: number) {
    this.#came = new Uint8Array(sent)
  }

  /** @throws {Error} where something else than payloads comes */
  push(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#rest, chunk])
    let at = 0
    for (; at + PAYLOAD_BYTES <= bytes.length; at += PAYLOAD_BYTES) {
      if (bytes.readUInt32BE(at) !== MARK) throw new Error('a receiver wrote what nobody sent')
      const number = bytes.readUInt32BE(at + 4)
      if (number < this.#came.length) this.#came[number] = 1
    }
    this.#rest = bytes.subarray(at)
  }

  get lost(): number {
    return this.#came.reduce((lost, came) => lost + 1 - came, 0)
  }
}
