/**
 * Boxes of a file by their paths, read with the box reader of `millrace check`.
 *
 * @module
 */
import { readBoxes, type Box } from '../../src/check/media/box-reader.ts'
import { Faults } from '../../src/check/media/media-facts.ts'

/** Offsets of the children in boxes that hold others. */
const CHILDREN: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    ['moov', 'trak', 'mdia', 'minf', 'dinf', 'stbl', 'mvex', 'moof', 'traf'].map((type) => [
      type,
      0,
    ]),
  ),
  stsd: 8,
  dref: 8,
  ...{ avc1: 78, avc3: 78, hvc1: 78, hev1: 78 },
  mp4a: 28,
  'ac-3': 28,
  'ec-3': 28,
  Opus: 28,
}

export interface PlacedBox {
  /** Types from the top, for example `moov/trak/tkhd`. */
  readonly path: string
  readonly at: number
  /** Payload without the box header. */
  readonly payload: Buffer
}

/** Lists all boxes in order, each before its children; throws when one does not fit. */
export function listBoxes(bytes: Buffer): PlacedBox[] {
  const faults = new Faults()
  const list = (range: Pick<Box, 'start' | 'end'>, parent: string): PlacedBox[] =>
    readBoxes(bytes, range, faults).flatMap(({ type, at, start, end }) => {
      const path = parent === '' ? type : `${parent}/${type}`
      const own = { path, at, payload: bytes.subarray(start, end) }
      const children = CHILDREN[type]
      return children === undefined ? [own] : [own, ...list({ start: start + children, end }, path)]
    })
  const boxes = list({ start: 0, end: bytes.length }, '')
  if (faults.list.length > 0) throw new Error(faults.list[0]!.text)
  return boxes
}

/** @returns payloads of the boxes of a path in hex */
export function payloadsOf(bytes: Buffer, path: string): string[] {
  return listBoxes(bytes).flatMap((box) => (box.path === path ? [box.payload.toString('hex')] : []))
}

/** Reads what an init segment with one track tells of it (14496-12 8.4.2, 8.5.2). */
export function readTrackHeader(init: Buffer): { timescale: number; entry: string } {
  const boxes = listBoxes(init)
  const header = boxes.find(({ path }) => path === 'moov/trak/mdia/mdhd')!.payload
  const entry = boxes.find(({ path }) => path.startsWith(`${DESCRIPTION}/`))!.path
  const timescale = header.readUInt32BE(header[0] === 1 ? 20 : 12)
  return { timescale, entry: entry.slice(DESCRIPTION.length + 1) }
}

const DESCRIPTION = 'moov/trak/mdia/minf/stbl/stsd'

export interface ReadSample {
  readonly decodeTicks: number
  readonly durationTicks: number
  readonly compositionOffset: number
  readonly flags: number
  readonly bytes: Buffer
}

/** Reads the samples of all fragments after the text of 14496-12 8.8, for files with one track and defaults in `tfhd`. */
export function readSamples(bytes: Buffer): ReadSample[] {
  const boxes = listBoxes(bytes)
  const samples: ReadSample[] = []
  let moofAt = 0
  let defaults = { duration: 0, size: 0, flags: 0 }
  let ticks = 0
  for (const { path, at, payload } of boxes) {
    if (path === 'moof') moofAt = at
    if (path === 'moof/traf/tfhd') {
      const flags = payload.readUInt32BE(0) & 0xffffff
      let next = 8 + ((flags & 1) === 0 ? 0 : 8) + ((flags & 2) === 0 ? 0 : 4)
      const read = (flag: number) =>
        (flags & flag) === 0 ? 0 : payload.readUInt32BE((next += 4) - 4)
      defaults = { duration: read(8), size: read(16), flags: read(32) }
    }
    if (path === 'moof/traf/tfdt') {
      ticks = payload[0] === 1 ? Number(payload.readBigUInt64BE(4)) : payload.readUInt32BE(4)
    }
    if (path !== 'moof/traf/trun') continue
    const flags = payload.readUInt32BE(0) & 0xffffff
    const count = payload.readUInt32BE(4)
    let dataAt = moofAt + payload.readInt32BE(8)
    let next = 12
    const firstFlags = (flags & 4) === 0 ? undefined : payload.readUInt32BE((next += 4) - 4)
    for (let index = 0; index < count; index++) {
      const read = (flag: number, fallback: number) =>
        (flags & flag) === 0 ? fallback : payload.readUInt32BE((next += 4) - 4)
      const durationTicks = read(0x100, defaults.duration)
      const sizeBytes = read(0x200, defaults.size)
      const ownFlags = read(0x400, defaults.flags)
      samples.push({
        decodeTicks: ticks,
        durationTicks,
        flags: index === 0 ? (firstFlags ?? ownFlags) : ownFlags,
        compositionOffset: read(0x800, 0) | 0,
        bytes: bytes.subarray(dataAt, dataAt + sizeBytes),
      })
      dataAt += sizeBytes
      ticks += durationTicks
    }
  }
  return samples
}

/** Splits a video sample at its length fields; throws when they do not add up. */
export function readNalUnits(sample: Buffer): Buffer[] {
  const nals: Buffer[] = []
  for (let at = 0; at < sample.length;) {
    const end = at + 4 + sample.readUInt32BE(at)
    if (end > sample.length) throw new Error(`a NAL unit ends at ${end} of ${sample.length} bytes`)
    nals.push(sample.subarray(at + 4, end))
    at = end
  }
  return nals
}
