/**
 * Random sources of media: any frame rate, jitter, key frames anywhere, audio early or late, losses and jumps; one
 * encoder, or several one after the other.
 *
 * @module
 */
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import type { Track } from '../../src/mpegts/track.ts'
import { createRandom, type Random } from '../support/random.ts'
import { AUDIO, VIDEO, audioUnit, moved, program, programOf, unit, videoUnit } from './source.ts'

const SEC = 90_000
export const SMALL: Track = { ...VIDEO, pid: 260 }
export const FRENCH: Track = { ...AUDIO, pid: 261, language: 'fra' }

/** PES packets that every source repeats with other times and ids, by what is in them. */
const UNITS = new Map<string, PesUnit>()

/** Frames of the audio PES packets. */
const AUDIO_FRAMES = [1, 8, 17] as const

/** Duration of an AAC frame of 48 kHz. */
export const AUDIO_FRAME_TICKS = 1920

export interface UnitOptions {
  readonly key?: boolean
  readonly reorderTicks?: number
  /** Number of audio frames; default 8. */
  readonly frames?: number
  /** Number in its last bytes, so that it is found again in segments, see `idOf`; default: arbitrary. */
  readonly id?: number
}

/** PES packet with the bytes of another one, timestamps included. */
export function unitOf(
  track: Track,
  dtsTicks: number,
  { key = false, reorderTicks = 0, frames = 8, id }: UnitOptions = {},
): PesUnit {
  const name = `${track.pid} ${key} ${frames}`
  const known = UNITS.get(name) ?? moved(createUnit(track, key, frames), track)
  UNITS.set(name, known)
  const chunks = id === undefined ? known.chunks : [withId(known.chunks[0]!, id)]
  const payload = id === undefined ? known.payload : withId(known.payload, id)
  return { ...known, chunks, payload, dtsTicks, ptsTicks: dtsTicks + reorderTicks }
}

function createUnit({ kind }: Track, key: boolean, frames: number): PesUnit {
  return kind === 'audio' ? audioUnit(0, { frames }) : videoUnit(0, { key, sizeBytes: 150 })
}

/** Four digits, none of which is part of a start code. */
function withId(packets: Buffer, id: number): Buffer {
  const bytes = Buffer.from(packets)
  for (let digit = 0; digit < 4; digit++) {
    bytes[bytes.length - 1 - digit] = 0x80 | ((id >> (7 * digit)) & 0x7f)
  }
  return bytes
}

/** @returns id in the last bytes of a PES packet, or of its last frame; undefined for another frame */
export function idOf(bytes: Uint8Array): number | undefined {
  let id = 0
  for (const byte of bytes.subarray(-4)) {
    if (byte < 0x80) return undefined
    id = (id << 7) | (byte & 0x7f)
  }
  return id
}

/** Input of the packager; `disconnect` when an encoder leaves, `settle` when media pauses. */
type Input = DemuxerOutput | 'disconnect' | 'settle'

export interface SentUnit {
  readonly unit: PesUnit
  /** PTS of its last frame. */
  readonly lastPtsTicks: number
}

export interface RandomSource {
  readonly segmentSec: number
  readonly partSec: number
  /** Inputs in order. */
  readonly inputs: readonly Input[]
  /** PES packets by their ids. */
  readonly sent: readonly SentUnit[]
  /** Whether the timestamps of each encoder neither jump nor have gaps, and no PES packet is lost or late. */
  readonly isClean: boolean
  /** Whether a frame is two fields, each in a PES packet. */
  readonly hasFields: boolean
}

/** What is sent, by all encoders of a source. */
interface Sending {
  readonly inputs: Input[]
  readonly sent: SentUnit[]
  isClean: boolean
  /** Start of the clock; undefined for a random one. */
  readonly startTicks: number | undefined
  /** Whether a frame is two fields, each in a PES packet. */
  readonly hasFields: boolean
  /** Whether audio PES packets have another number of frames than their times tell. */
  readonly isMismatched: boolean
}

const LAYOUTS: readonly (readonly Track[])[] = [
  [VIDEO, AUDIO],
  [VIDEO],
  [AUDIO],
  [VIDEO, AUDIO, FRENCH],
  [VIDEO, SMALL, AUDIO, FRENCH],
]

/** Longest time that audio may lag without loss: renditions wait a second for it. */
const MAX_CLEAN_LAG_TICKS = 0.5 * SEC

const FRAME_RATES = [10, 12.5, 15, 24, 23.976, 25, 29.97, 30, 48, 50, 59.94, 60, 100, 120]

/** Starts of the clock other than a random one: before 0, as after a wrap, and before wraps of 33 bits. */
const STARTS = [undefined, undefined, -1.3 * SEC, 0, 2 ** 33 - 3 * SEC, 2 ** 34 - SEC]

export function createRandomSource(seed: number): RandomSource {
  const random = createRandom(seed)
  // Of its own, so that a seed always has the same frames and times.
  const details = createRandom(~seed)
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)]!
  const sending: Sending = {
    ...{ inputs: [], sent: [], isClean: true },
    startTicks: STARTS[details.below(STARTS.length)],
    hasFields: details.chance(0.1),
    isMismatched: details.chance(0.1),
  }
  if (sending.isMismatched) sending.isClean = false
  let tracks = pick(LAYOUTS)
  encode(random, tracks, 5 + random.below(5), sending)
  for (let others = pick([0, 0, 1, 2]); others > 0; others--) {
    if (random.chance(0.3)) tracks = pick(LAYOUTS)
    sending.inputs.push('disconnect')
    encode(random, tracks, 2 + random.below(3), sending)
  }
  const { inputs, sent, isClean, hasFields } = sending
  const [segmentSec, partSec] = [pick([0.5, 1, 2]), pick([0.1, 0.2, 0.333, 0.5])]
  return { inputs, sent, isClean, hasFields, segmentSec, partSec }
}

/** Adds the inputs of one encoder for `sec` seconds of media. */
function encode(random: Random, tracks: readonly Track[], sec: number, sending: Sending): void {
  const { inputs } = sending
  const integer = (min: number, max: number) => min + random.below(max - min + 1)
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)]!
  const fps = pick(FRAME_RATES)
  const frameTicks = SEC / fps
  const isVariable = integer(0, 3) === 0
  const jitterTicks = pick([0, 0, 45, 90])
  const gopFrames = pick([1, 5, 12, Math.round(fps / 2), Math.round(fps), Math.round(2 * fps), 500])
  const hasScenes = integer(0, 2) === 0
  const reorderTicks = pick([0, 0, Math.round(2 * frameTicks)])
  const audioFrames = pick(AUDIO_FRAMES)
  const audioTicks = audioFrames * AUDIO_FRAME_TICKS
  const audioOffsetTicks = integer(-SEC, SEC)
  const lossRate = pick([0, 0, 0.01, 0.1])
  if (lossRate > 0 || audioOffsetTicks > MAX_CLEAN_LAG_TICKS) sending.isClean = false

  const send = (
    track: Track,
    dtsTicks: number,
    { startsFrame = true, ...options }: UnitOptions & { readonly startsFrame?: boolean },
  ) => {
    const value = {
      ...unitOf(track, dtsTicks, { ...options, id: sending.sent.length }),
      startsFrame,
    }
    const laterTicks = ((options.frames ?? 1) - 1) * AUDIO_FRAME_TICKS
    sending.sent.push({ unit: value, lastPtsTicks: value.ptsTicks + laterTicks })
    return value
  }
  inputs.push(program(programOf(...tracks)))
  const videos = tracks.filter(({ kind }) => kind === 'video')
  const audios = tracks.filter(({ kind }) => kind === 'audio')
  const randomTicks = integer(0, 1000) * SEC
  let ticks = sending.startTicks ?? randomTicks
  let audioDueTicks = ticks
  let sinceKey = Infinity
  const endTicks = ticks + sec * SEC
  let media = ticks
  while (media < endTicks) {
    const accident = integer(0, 3000)
    if (accident <= 7) sending.isClean = false
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
      const value = send(track, times, { key: isKey, reorderTicks })
      const { pid } = track
      const { dtsTicks, ptsTicks } = value
      if (integer(0, 9) > 0) inputs.push({ type: 'header', pid, times: { dtsTicks, ptsTicks } })
      if (random.chance(lossRate)) continue
      inputs.push(unit(value))
      if (!sending.hasFields) continue
      const second = { reorderTicks, startsFrame: false }
      const field = send(track, times + Math.floor(frameTicks / 2), second)
      inputs.push({ type: 'header', pid, times: field })
      inputs.push(unit(field))
    }
    // Audio that is late arrives after the video of its time.
    while (audioDueTicks <= ticks - audioOffsetTicks) {
      for (const track of audios) {
        const frames = sending.isMismatched ? 8 : audioFrames
        const value = send(track, audioDueTicks, { frames })
        if (!random.chance(lossRate)) inputs.push(unit(value))
      }
      audioDueTicks += audioTicks
    }
    const stepTicks = isVariable && integer(0, 4) === 0 ? frameTicks * integer(1, 6) : frameTicks
    ticks += stepTicks
    media += stepTicks
  }
}
