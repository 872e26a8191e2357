/**
 * PES packets on another clock.
 *
 * @module
 */
import { pesBytes } from '../pes.ts'
import type { PesUnit } from '../pes-unit.ts'
import { packetizePes, writeTimes } from './pes-packetizer.ts'

/** @returns a copy whose PTS and DTS are `ticks` later, in units of 90 kHz */
export function shiftUnit(unit: PesUnit, ticks: number): PesUnit {
  const { chunks } = unit
  const times = { ptsTicks: unit.ptsTicks + ticks, dtsTicks: unit.dtsTicks + ticks }
  const pes = pesBytes(chunks)
  writeTimes(pes, times)
  const packets = packetizePes(chunks[0]!, pes)
  return { ...unit, ...times, chunks: [packets], sizeBytes: packets.length }
}
