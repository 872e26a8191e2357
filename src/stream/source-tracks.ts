/**
 * What players notice of another source: other codecs, sizes or rates.
 *
 * @module
 */
import type { SourceName } from '../api/records.ts'
import type { WarningFact } from '../diagnosis/warnings.ts'
import type { Track } from '../mpegts/track.ts'

/** @returns a fact for the first source that differs from the one on air */
export function compareTracks(
  onAir: SourceName,
  tracksOf: ReadonlyMap<SourceName, readonly Track[]>,
): WarningFact[] {
  const onAirHas = describe(tracksOf.get(onAir) ?? [])
  if (onAirHas === '') return []
  for (const [source, tracks] of tracksOf) {
    const has = describe(tracks)
    if (has !== '' && has !== onAirHas)
      return [{ code: 'SOURCES_DIFFER', source, has, onAir, onAirHas }]
  }
  return []
}

/** Describes the first track of each kind. @returns an empty text while its parameters are unknown */
function describe(tracks: readonly Track[]): string {
  const texts: string[] = []
  for (const kind of ['video', 'audio']) {
    const track = tracks.find((each) => each.kind === kind)
    if (track === undefined) continue
    if (track.parameters === undefined) return ''
    const { width, height, sampleRate = 0, channels } = track.parameters
    const format =
      kind === 'video' ? `${width}x${height}` : `${sampleRate / 1000} kHz ${channels}ch`
    texts.push(`${track.codec} ${format}`)
  }
  return texts.join(' ')
}
