/**
 * Which tracks of a program reach the segments: the first video and the first audio track that every player of MPEG-TS
 * segments understands. One it does not know makes hls.js fail on the whole program or lose the sound in silence.
 *
 * @module
 */
import type { Codec, Program, Track } from '../mpegts/track.ts'

export interface CarriedTracks {
  readonly programNumber: number
  /** PID of the clock in the outgoing PMT. */
  readonly pcrPid: number
  readonly video?: Track
  readonly audio?: Track
}

const VIDEO_CODECS: ReadonlySet<Codec> = new Set(['h264', 'h265'])
const AUDIO_CODECS: ReadonlySet<Codec> = new Set(['aac', 'mp3', 'mp2'])

/** ISO/IEC 13818-1 2.4.4.9: a program without a clock. */
const NO_PCR_PID = 0x1fff

/** @param silentPids  of tracks that are passed over, since nothing comes of them */
export function selectTracks(
  program: Program,
  silentPids: ReadonlySet<number> = new Set(),
): CarriedTracks {
  const { programNumber, pcrPid } = program
  const tracks = program.tracks.filter(({ pid }) => !silentPids.has(pid))
  const video = tracks.find(({ codec }) => VIDEO_CODECS.has(codec))
  const audio = tracks.find(({ codec }) => AUDIO_CODECS.has(codec))
  const carried = { programNumber, pcrPid, ...(video && { video }), ...(audio && { audio }) }
  const clockIsLeftOut = leftOutTracks(program, carried).some(({ pid }) => pid === pcrPid)
  return clockIsLeftOut ? { ...carried, pcrPid: NO_PCR_PID } : carried
}

export function leftOutTracks(program: Program, { video, audio }: CarriedTracks): Track[] {
  return program.tracks.filter((track) => track !== video && track !== audio)
}

/** Whether both carry the same tracks, whatever is known of them. */
export function isSameSelection(a: CarriedTracks, b: CarriedTracks): boolean {
  return a.video?.pid === b.video?.pid && a.audio?.pid === b.audio?.pid
}

/** The carried tracks, video first. */
export function listTracks({ video, audio }: CarriedTracks): Track[] {
  return [video, audio].filter((track) => track !== undefined)
}
