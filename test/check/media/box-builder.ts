/**
 * Builds fragmented MP4 that no muxer at hand writes.
 *
 * @module
 */

/** @param size  as written; by default the true one */
export function makeBox(
  type: string,
  payload: Uint8Array = Buffer.alloc(0),
  size?: number,
): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(size ?? 8 + payload.length, 0)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, payload])
}

/** @returns 32-bit fields in a row */
export function fields(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, index * 4)
  return bytes
}

export interface BuiltTrack {
  readonly id: number
  readonly handler: 'vide' | 'soun'
  readonly ticksPerSec: number
  readonly entry: string
}

/** @returns init segment whose sample entries have no codec configuration */
export function makeInit(tracks: readonly BuiltTrack[]): Buffer {
  const traks = tracks.map(({ id, handler, ticksPerSec, entry }) => {
    const stsd = makeBox('stsd', Buffer.concat([fields(0, 1), makeBox(entry, Buffer.alloc(78))]))
    const minf = makeBox('minf', makeBox('stbl', stsd))
    const mdhd = makeBox('mdhd', fields(0, 0, 0, ticksPerSec, 0, 0))
    const hdlr = makeBox(
      'hdlr',
      Buffer.concat([fields(0, 0), Buffer.from(handler), fields(0, 0, 0)]),
    )
    const tkhd = makeBox('tkhd', fields(0, 0, 0, id, 0))
    return makeBox(
      'trak',
      Buffer.concat([tkhd, makeBox('mdia', Buffer.concat([mdhd, hdlr, minf]))]),
    )
  })
  const trex = tracks.map(({ id }) => makeBox('trex', fields(0, id, 1, 0, 0, 0)))
  const moov = Buffer.concat([...traks, makeBox('mvex', Buffer.concat(trex))])
  return Buffer.concat([makeBox('ftyp', Buffer.from('isom')), makeBox('moov', moov)])
}

export interface BuiltRun {
  readonly id: number
  readonly decodeTicks: number
  /** Durations of samples, in ticks. */
  readonly samples?: readonly number[]
  /** Number of samples as written. */
  readonly count?: number
}

/** @returns segment of one fragment, whose samples are empty */
export function makeSegment(runs: readonly BuiltRun[]): Buffer {
  const trafs = runs.map(({ id, decodeTicks, samples, count }) => {
    const flags = samples === undefined ? 0 : 0x100
    const run = fields(flags, count ?? samples?.length ?? 0, ...(samples ?? []))
    const tfhd = makeBox('tfhd', fields(0x020000, id))
    const tfdt = makeBox('tfdt', fields(0, decodeTicks))
    return makeBox('traf', Buffer.concat([tfhd, tfdt, makeBox('trun', run)]))
  })
  const moof = makeBox('moof', Buffer.concat([makeBox('mfhd', fields(0, 1)), ...trafs]))
  return Buffer.concat([makeBox('styp', Buffer.from('msdh')), moof, makeBox('mdat')])
}
