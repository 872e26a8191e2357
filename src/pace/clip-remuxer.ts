/**
 * Remuxes a transport stream file so that players can start with it and that it loops without a gap: video from its first key
 * frame on, and audio of the same time with a frame in each PES packet, as `LoopTimeline` wants it.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import {
  AC3_READER,
  aacReader,
  MPEG_AUDIO_READER,
  type AudioFrameReader,
} from '../mp4/audio-frames.ts'
import { noSampleStats } from '../mp4/sample.ts'
import { ContinuityCounters } from '../mpegts/continuity.ts'
import { Demuxer, type DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import { packetizePes } from '../mpegts/mux/pes-packetizer.ts'
import { encodePsi } from '../mpegts/mux/program-tables.ts'
import { HAS_PAYLOAD } from '../mpegts/packet.ts'
import { encodePesHeader, pesBytes } from '../mpegts/pes.ts'
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import type { Codec, Program, Track } from '../mpegts/track.ts'

/** Maximum mean bitrate; so much is `INGEST_MAX_MBPS` for encoders. */
const MAX_BPS = 100e6

/** Maximum time by which audio that ends before the video is lengthened: its last frame is repeated. */
const MAX_MISSING_TICKS = 0.5 * TICKS_PER_SEC

/** Distance of PAT and PMT, which the source monitor expects each half second. */
const PSI_TICKS = 0.1 * TICKS_PER_SEC

/** Difference of times that only rounding makes. */
const ROUNDING_TICKS = 2

/** Duration of a frame that is the only one. */
const SINGLE_FRAME_TICKS = TICKS_PER_SEC / 25

const READERS: Readonly<Partial<Record<Codec, AudioFrameReader>>> = {
  aac: aacReader(),
  mp3: MPEG_AUDIO_READER,
  mp2: MPEG_AUDIO_READER,
  ac3: AC3_READER,
  eac3: AC3_READER,
}

/** Transport packets of a PES packet, or with a PCR between two. */
interface Piece {
  readonly track: Track | undefined
  readonly ptsTicks: number
  /** Time of sending. */
  readonly dtsTicks: number
  readonly randomAccess: boolean
  readonly chunks: readonly Buffer[]
  /** The audio frame that is all of it. */
  readonly frame?: AudioFrame
}

interface AudioFrame {
  readonly streamId: number
  /** Transport packet whose header, and adaptation field with any PCR, begins the PES packet of the frame. */
  readonly packet: Buffer
  readonly bytes: Buffer
  readonly durationTicks: number
}

/** A piece that is an audio frame. */
type FramePiece = Piece & { readonly track: Track; readonly frame: AudioFrame }

/** Calling order: `push` all bytes of the file, in any pieces, then `end`. */
export class ClipRemuxer {
  readonly #demuxer = new Demuxer()
  readonly #pieces: Piece[] = []
  #program: Program | undefined
  #tracksChange = false

  /** @param bytes  must not be changed afterwards */
  push(bytes: Buffer): void {
    this.#take(this.#demuxer.push(bytes))
  }

  /**
   * @returns whole transport packets in order of their times: PAT and PMT, then the media
   * @throws {MillraceError} `MEDIA_INVALID` with what is wrong with the file
   */
  end(): Buffer {
    this.#take(this.#demuxer.end())
    const program = this.#program
    if (program === undefined) throw invalid('it is no MPEG transport stream')
    if (this.#tracksChange) throw invalid('its tracks change')
    const lead =
      program.tracks.find(({ kind }) => kind === 'video') ??
      program.tracks.find(({ kind }) => kind === 'audio')
    if (lead === undefined) throw invalid('it has neither H.264 or H.265 video nor audio')
    const leads = this.#pieces.filter(({ track }) => track?.pid === lead.pid)
    const first = leads.findIndex(({ randomAccess }) => randomAccess)
    if (first === -1) throw invalid(`its ${lead.kind} has no frame with which players can start`)
    return this.#remux(program, leads.slice(first))
  }

  #take(outputs: readonly DemuxerOutput[]): void {
    for (const output of outputs) {
      if (output.type === 'program') {
        this.#program = output.program
        this.#tracksChange ||= output.layoutChanged
      } else if (output.type === 'unit' && !output.unit.damaged) {
        this.#pieces.push(...(splitAudio(output.unit) ?? [output.unit]))
      } else if (output.type === 'packets') {
        const { ptsTicks = 0, dtsTicks = 0 } = this.#pieces.at(-1) ?? {}
        const { chunks } = output
        this.#pieces.push({ track: undefined, ptsTicks, dtsTicks, randomAccess: false, chunks })
      }
    }
  }

  /** @param leads  of the video or, without video, the audio: all from the first key frame on */
  #remux(program: Program, leads: readonly Piece[]): Buffer {
    const [first] = leads as [Piece]
    const spanTicks = durationTicks(leads)
    const begin = this.#pieces.indexOf(first)
    const kept = this.#pieces.filter(({ ptsTicks, frame }, index) =>
      // Audio of the time of the key frame may precede it in the file.
      frame === undefined ? index >= begin : ptsTicks + frame.durationTicks > first.ptsTicks,
    )
    const frames = kept.filter(isFrame)
    for (const { pid } of program.tracks) {
      const own = frames.filter(({ track }) => track.pid === pid)
      const [oldest, newest] = [own[0], own.at(-1)]
      if (oldest === undefined || newest === undefined) continue
      kept.push(...repeatUntil(oldest.ptsTicks + spanTicks, newest))
    }
    const sorted = kept.toSorted((a, b) => a.dtsTicks - b.dtsTicks)
    const clip = Buffer.concat(withPsi(encodePsi(program, 0), sorted))
    const bps = (clip.length * 8 * TICKS_PER_SEC) / spanTicks
    if (spanTicks <= 0 || bps > MAX_BPS) throw invalid(`it has more than ${MAX_BPS / 1e6} Mbit/s`)
    new ContinuityCounters().renumber(clip, 0, clip.length)
    return clip
  }
}

function invalid(problem: string): MillraceError {
  return new MillraceError('MEDIA_INVALID', { message: `the file cannot be looped: ${problem}` })
}

function isFrame(piece: Piece): piece is FramePiece {
  return piece.frame !== undefined
}

/** @returns time from the first DTS to the end of the last frame, if that is as long as the one before */
function durationTicks(pieces: readonly Piece[]): number {
  const [first, last, before] = [pieces[0]!, pieces.at(-1)!, pieces.at(-2)]
  const frameTicks = before === undefined ? SINGLE_FRAME_TICKS : last.dtsTicks - before.dtsTicks
  return last.dtsTicks - first.dtsTicks + frameTicks
}

/** @returns undefined unless the PES packet has whole audio frames and nothing else */
function splitAudio({ track, chunks, payload, ptsTicks }: PesUnit): FramePiece[] | undefined {
  const reader = READERS[track.codec]
  if (reader === undefined) return undefined
  const streamId = pesBytes(chunks.slice(0, 1))[3]!
  const frames: FramePiece[] = []
  const stats = noSampleStats()
  let at = 0
  let ticks = ptsTicks
  while (at < payload.length) {
    const frame = reader.read(payload, at, stats)
    if (frame === undefined || frame === 'incomplete' || frame.content === undefined)
      return undefined
    const packet = at === 0 ? chunks[0]! : withoutFields(chunks[0]!)
    const bytes = payload.subarray(at, at + frame.sizeBytes)
    const { samples, createFormat } = frame.content
    const frameTicks = (samples * TICKS_PER_SEC) / createFormat().timescale
    const content = { streamId, packet, bytes, durationTicks: frameTicks }
    frames.push(encodeFrame(content, track, ticks))
    at += frame.sizeBytes
    ticks += frameTicks
  }
  return frames
}

/** @returns copies of the last frame, one after the other, so that audio lasts until a time that is not far */
function repeatUntil(endTicks: number, { frame, track, ptsTicks }: FramePiece): FramePiece[] {
  const missingTicks = endTicks - ptsTicks - frame.durationTicks - ROUNDING_TICKS
  if (missingTicks <= 0 || missingTicks > MAX_MISSING_TICKS) return []
  const copy = { ...frame, packet: withoutFields(frame.packet) }
  return Array.from({ length: Math.ceil(missingTicks / frame.durationTicks) }, (_, index) =>
    encodeFrame(copy, track, ptsTicks + (index + 1) * frame.durationTicks),
  )
}

function encodeFrame(frame: AudioFrame, track: Track, ptsTicks: number): FramePiece {
  const { streamId, packet, bytes } = frame
  const header = encodePesHeader(streamId, Math.round(ptsTicks), bytes.length)
  const chunks = [packetizePes(packet, Buffer.concat([header, bytes]))]
  return { track, ptsTicks, dtsTicks: ptsTicks, randomAccess: true, chunks, frame }
}

/** @returns header of a transport packet without an adaptation field */
function withoutFields(packet: Buffer): Buffer {
  const header = Buffer.from(packet.subarray(0, 4))
  header[3] = HAS_PAYLOAD
  return header
}

/** Inserts PAT and PMT first, and again and again. */
function withPsi(psi: Buffer, sorted: readonly Piece[]): Buffer[] {
  let psiTicks = -Infinity
  return sorted.flatMap(({ dtsTicks, chunks }) => {
    if (dtsTicks - psiTicks < PSI_TICKS) return chunks
    psiTicks = dtsTicks
    return [psi, ...chunks]
  })
}
