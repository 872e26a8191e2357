/**
 * Random sources of media: any frame rate, jitter, key frames anywhere, audio early or late, losses and jumps; one
 * encoder, or several one after the other.
 *
 * @module
 */
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer-output.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import type { Track } from '../../src/mpegts/track.ts'
import type { Random } from '../support/random.ts'
import { AUDIO, VIDEO, audioUnit, moved, program, programOf, unit, videoUnit } from './source.ts'

const SEC = 90_000
const SMALL: Track = { ...VIDEO, pid: 260 }
const FRENCH: Track = { ...AUDIO, pid: 261, language: 'fra' }

/** PES packets that every source repeats with other times. */
const UNITS = new Map<string, PesUnit>()
for (const track of [VIDEO, SMALL]) {
  UNITS.set(`${track.pid} key`, moved(videoUnit(0, { key: true, sizeBytes: 300 }), track))
  UNITS.set(`${track.pid}`, moved(videoUnit(0, { sizeBytes: 150 }), track))
}
for (const track of [AUDIO, FRENCH]) UNITS.set(`${track.pid}`, moved(audioUnit(0), track))

/** PES packet without its own bytes: those of a track and kind are always the same, timestamps included. */
export function unitOf(
  track: Track,
  dtsTicks: number,
  { key = false, reorderTicks = 0 } = {},
): PesUnit {
  const known = UNITS.get(key ? `${track.pid} key` : `${track.pid}`)!
  return { ...known, dtsTicks, ptsTicks: dtsTicks + reorderTicks }
}

/** Input of the packager; `disconnect` when an encoder leaves, `settle` when media pauses. */
type Input = DemuxerOutput | 'disconnect' | 'settle'

export interface RandomSource {
  readonly segmentSec: number
  readonly partSec: number
  /** Inputs in order. */
  readonly inputs: readonly Input[]
}

const LAYOUTS: readonly (readonly Track[])[] = [
  [VIDEO, AUDIO],
  [VIDEO],
  [AUDIO],
  [VIDEO, AUDIO, FRENCH],
  [VIDEO, SMALL, AUDIO, FRENCH],
]

const FRAME_RATES = [10, 12.5, 15, 24, 23.976, 25, 29.97, 30, 48, 50, 59.94, 60, 100, 120]

export function createRandomSource(random: Random): RandomSource {
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)]!
  let tracks = pick(LAYOUTS)
  const inputs = encode(random, tracks, 5 + random.below(5))
  for (let others = pick([0, 0, 1, 2]); others > 0; others--) {
    if (random.chance(0.3)) tracks = pick(LAYOUTS)
    inputs.push('disconnect', ...encode(random, tracks, 2 + random.below(3)))
  }
  return { inputs, segmentSec: pick([0.5, 1, 2]), partSec: pick([0.1, 0.2, 0.333, 0.5]) }
}

/** Inputs of one encoder for `sec` seconds of media. */
function encode(random: Random, tracks: readonly Track[], sec: number): Input[] {
  const integer = (min: number, max: number) => min + random.below(max - min + 1)
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)]!
  const fps = pick(FRAME_RATES)
  const frameTicks = SEC / fps
  const isVariable = integer(0, 3) === 0
  const jitterTicks = pick([0, 0, 45, 90])
  const gopFrames = pick([1, 5, 12, Math.round(fps / 2), Math.round(fps), Math.round(2 * fps), 500])
  const hasScenes = integer(0, 2) === 0
  const reorderTicks = pick([0, 0, Math.round(2 * frameTicks)])
  const audioTicks = pick([1920, 8 * 1920, 17 * 1920])
  const audioOffsetTicks = integer(-SEC, SEC)
  const lossRate = pick([0, 0, 0.01, 0.1])

  const inputs: Input[] = [program(programOf(...tracks))]
  const videos = tracks.filter(({ kind }) => kind === 'video')
  const audios = tracks.filter(({ kind }) => kind === 'audio')
  let ticks = integer(0, 1000) * SEC
  let audioDueTicks = ticks
  let sinceKey = Infinity
  const endTicks = ticks + sec * SEC
  let media = ticks
  while (media < endTicks) {
    const accident = integer(0, 3000)
    if (accident === 0) {
      inputs.push('disconnect')
      sinceKey = Infinity
    } else if (accident === 1) {
      const jumpTicks = integer(-20 * SEC, 20 * SEC)
      ticks += jumpTicks
      audioDueTicks += jumpTicks
    } else if (accident === 2) {
      const gapTicks = integer(0, 2 * SEC)
      ticks += gapTicks
      media += gapTicks
    } else if (accident <= 6) {
      // Too short for a discontinuity.
      ticks -= integer(0, SEC)
    } else if (accident === 7) inputs.push('settle')
    const isKey = sinceKey >= gopFrames || (hasScenes && integer(0, 40) === 0)
    sinceKey = isKey ? 1 : sinceKey + 1
    const times = Math.round(ticks + integer(-jitterTicks, jitterTicks))
    for (const track of videos) {
      const value = unitOf(track, times, { key: isKey, reorderTicks })
      const { pid } = track
      const { dtsTicks, ptsTicks } = value
      if (integer(0, 9) > 0) inputs.push({ type: 'header', pid, times: { dtsTicks, ptsTicks } })
      if (!random.chance(lossRate)) inputs.push(unit(value))
    }
    // Audio that is late arrives after the video of its time.
    while (audioDueTicks <= ticks - audioOffsetTicks) {
      for (const track of audios) {
        if (!random.chance(lossRate)) inputs.push(unit(unitOf(track, audioDueTicks)))
      }
      audioDueTicks += audioTicks
    }
    const stepTicks = isVariable && integer(0, 4) === 0 ? frameTicks * integer(1, 6) : frameTicks
    ticks += stepTicks
    media += stepTicks
  }
  return inputs
}
