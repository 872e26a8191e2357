/**
 * Comparison of programs and of track parameters.
 *
 * @module
 */
import type { Program, Track, TrackParameters } from '../track.ts'

/** Whether players can continue with the same decoders. Unknown parameters count as unchanged. */
export function isSameLayout(a: Program, b: Program): boolean {
  return (
    a.tracks.length === b.tracks.length &&
    a.tracks.every((track, index) => isSameTrackLayout(track, b.tracks[index]!))
  )
}

function isSameTrackLayout(a: Track, b: Track): boolean {
  if (a.pid !== b.pid || a.streamType !== b.streamType) return false
  if (a.parameters === undefined || b.parameters === undefined) return true
  return (
    a.codec === b.codec &&
    a.parameters.width === b.parameters.width &&
    a.parameters.height === b.parameters.height &&
    a.parameters.sampleRate === b.parameters.sampleRate &&
    a.parameters.channels === b.parameters.channels
  )
}

export function areSameParameters(
  a: TrackParameters | undefined,
  b: TrackParameters | undefined,
): boolean {
  return (
    a?.codecString === b?.codecString &&
    a?.width === b?.width &&
    a?.height === b?.height &&
    a?.frameRate === b?.frameRate &&
    a?.videoRange === b?.videoRange &&
    a?.sampleRate === b?.sampleRate &&
    a?.channels === b?.channels &&
    a?.closedCaptions === b?.closedCaptions
  )
}
