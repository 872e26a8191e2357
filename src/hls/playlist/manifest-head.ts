/**
 * Measurements and date ranges as plain JSON, and back.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { DateRange } from '../date-range.ts'
import type { ManifestDateRange, ManifestTrack, RenditionMeasurements } from '../manifest.ts'
import type { MeterState } from './rendition-meter.ts'

export function encodeMeter(state: MeterState): RenditionMeasurements {
  return { ...state, tracks: state.tracks.map(encodeTrack) }
}

export function decodeMeter(measured: RenditionMeasurements): MeterState {
  return { ...measured, tracks: measured.tracks.map(decodeTrack) }
}

function encodeTrack({ descriptors, ...track }: Track): ManifestTrack {
  return { ...track, descriptors: descriptors.toString('base64') }
}

function decodeTrack({ descriptors, ...track }: ManifestTrack): Track {
  return { ...track, descriptors: Buffer.from(descriptors, 'base64') }
}

export function encodeDateRange(range: DateRange): ManifestDateRange {
  const { scte35Out, scte35In, scte35Cmd, ...rest } = range
  return {
    ...rest,
    ...(scte35Out && { scte35Out: scte35Out.toString('base64') }),
    ...(scte35In && { scte35In: scte35In.toString('base64') }),
    ...(scte35Cmd && { scte35Cmd: scte35Cmd.toString('base64') }),
  }
}

/** A break whose end can no longer be announced ends as planned. */
export function decodeDateRange(range: ManifestDateRange): DateRange {
  const { scte35Out, scte35In, scte35Cmd, ...rest } = range
  const { durationSec = rest.plannedDurationSec } = rest
  return {
    ...rest,
    ...(durationSec !== undefined && { durationSec }),
    ...(scte35Out !== undefined && { scte35Out: Buffer.from(scte35Out, 'base64') }),
    ...(scte35In !== undefined && { scte35In: Buffer.from(scte35In, 'base64') }),
    ...(scte35Cmd !== undefined && { scte35Cmd: Buffer.from(scte35Cmd, 'base64') }),
  }
}
