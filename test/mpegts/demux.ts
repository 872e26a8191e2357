/**
 * Runs bytes through a demuxer and selects from its outputs.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { Demuxer, type DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import { decodePesHeader, pesBytes } from '../../src/mpegts/pes.ts'
import type { Program } from '../../src/mpegts/track.ts'

/** Payload size of a usual SRT packet. */
export const SRT_PAYLOAD_BYTES = 1316

export function readFixture(name: string): Buffer {
  return readFileSync(new URL(`../../fixtures/${name}.mpegts`, import.meta.url))
}

/** @param sizes  lengths of the pushes, used cyclically */
export function* cut(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}

/** Pushes all of `bytes` and ends. */
export function demux(
  bytes: Buffer,
  sizes: readonly number[] = [SRT_PAYLOAD_BYTES],
  demuxer = new Demuxer(),
): DemuxerOutput[] {
  const outputs: DemuxerOutput[] = []
  for (const piece of cut(bytes, sizes)) outputs.push(...demuxer.push(piece))
  return outputs.concat(demuxer.end())
}

export function unitsOf(outputs: readonly DemuxerOutput[], pid?: number): PesUnit[] {
  const units = outputs.flatMap((output) => (output.type === 'unit' ? [output.unit] : []))
  return pid === undefined ? units : units.filter(({ track }) => track.pid === pid)
}

export function programsOf(outputs: readonly DemuxerOutput[]): Program[] {
  return outputs.flatMap((output) => (output.type === 'program' ? [output.program] : []))
}

/** @returns elementary stream bytes of a unit */
export function payloadOf({ chunks }: PesUnit): Buffer {
  const pes = pesBytes(chunks)
  const header = decodePesHeader(pes)
  if (header === undefined) throw new Error('a unit without a PES header')
  return pes.subarray(header.sizeBytes)
}
