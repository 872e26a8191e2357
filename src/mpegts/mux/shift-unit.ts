/**
 * PES packets on another clock.
 *
 * @module
 */
import { decodePesHeader, pesBytes, writeTimestamp } from '../pes.ts'
import type { PesUnit } from '../pes-unit.ts'
import { packetizePes } from './pes-packetizer.ts'

/** Offsets of PTS and DTS in a PES packet that has them (ISO/IEC 13818-1 2.4.3.6). */
const PTS_AT = 9
const DTS_AT = 14

/** @returns a copy whose PTS and DTS are `ticks` later, in units of 90 kHz */
export function shiftUnit(unit: PesUnit, ticks: number): PesUnit {
  const { chunks, ptsTicks, dtsTicks } = unit
  const pes = pesBytes(chunks)
  const { ptsTicks: sentPts, dtsTicks: sentDts } = decodePesHeader(pes) ?? {}
  if (sentPts !== undefined) writeTimestamp(pes, PTS_AT, ptsTicks + ticks)
  if (sentDts !== undefined) writeTimestamp(pes, DTS_AT, dtsTicks + ticks)
  const packets = packetizePes(chunks[0]!, pes)
  return {
    ...unit,
    chunks: [packets],
    sizeBytes: packets.length,
    ptsTicks: ptsTicks + ticks,
    dtsTicks: dtsTicks + ticks,
  }
}
