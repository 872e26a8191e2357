/**
 * Writes NAL units bit by bit: what no encoder at hand sends.
 *
 * @module
 */

/** Writer of bit fields; `bits` has them as 0 and 1. */
export class BitWriter {
  bits = ''

  u(count: number, value: number): this {
    this.bits += value.toString(2).padStart(count, '0')
    return this
  }

  ue(value: number): this {
    const code = (value + 1).toString(2)
    this.bits += '0'.repeat(code.length - 1) + code
    return this
  }

  se(value: number): this {
    return this.ue(value > 0 ? 2 * value - 1 : -2 * value)
  }

  /** Bits as bytes, padded with zeros. */
  get bytes(): Buffer {
    const groups = this.bits.match(/.{1,8}/g) ?? []
    return Buffer.from(groups.map((group) => Number.parseInt(group.padEnd(8, '0'), 2)))
  }
}

/** Creates a NAL unit: header, payload, stop bit, emulation prevention bytes. */
export function nalUnit(header: readonly number[], payload: BitWriter): Buffer {
  const escaped: number[] = []
  let zeros = 0
  for (const byte of stopped(payload)) {
    if (zeros >= 2 && byte <= 3) {
      escaped.push(3)
      zeros = 0
    }
    zeros = byte === 0 ? zeros + 1 : 0
    escaped.push(byte)
  }
  return Buffer.from([...header, ...escaped])
}

function stopped(payload: BitWriter): Buffer {
  const writer = new BitWriter()
  writer.bits = `${payload.bits}1`
  return writer.bytes
}

/** Joins NAL units with alternating start codes of three and four bytes. */
export function byteStream(...nals: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    nals.flatMap((nal, index) => [Buffer.from(index % 2 === 0 ? [0, 0, 0, 1] : [0, 0, 1]), nal]),
  )
}

/** Splits bytes into pieces of a given size. */
export function pieces(bytes: Buffer, length: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) =>
    bytes.subarray(i * length, (i + 1) * length),
  )
}
