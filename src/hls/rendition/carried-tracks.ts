/**
 * Which tracks of a program reach the segments, and together in which. A track that a player does not know makes hls.js
 * fail on the whole program or lose the sound in silence, so such tracks are carried only where that is asked for.
 *
 * @module
 */
import type { Codec, Program, Track } from '../../mpegts/track.ts'

/** `compatible`: what every player of MPEG-TS segments understands or passes over. `all`: whatever comes in PES packets. */
export type TrackPolicy = 'compatible' | 'all'

/** What one rendition carries. */
export interface CarriedTracks {
  readonly programNumber: number
  /** PID of the clock in the outgoing PMT. */
  readonly pcrPid: number
  readonly video?: Track
  readonly audio?: Track
  /** Beside picture and sound: timed metadata, and with the policy `all` whatever else there is. */
  readonly data?: readonly Track[]
}

/** The tracks of a program by their part in the presentation. */
export interface TrackChoice {
  /** The main one first, then further variants, in the order of the PMT. */
  readonly videos: readonly Track[]
  /** The default first, then its alternatives: the most widely understood codec first, then the order of the PMT. */
  readonly audios: readonly Track[]
  readonly data: readonly Track[]
  readonly leftOut: readonly Track[]
}

const VIDEO_CODECS: ReadonlySet<Codec> = new Set(['h264', 'h265'])

/** How widely a codec is understood; what is not named here is not compatible. */
const AUDIO_RANKS: Readonly<Partial<Record<Codec, number>>> = { aac: 0, mp3: 1, mp2: 1, ac3: 2 }
const LAST_RANK = 3

const PRIVATE_PES = 0x06
const METADATA_PES = 0x15

/** Carried in sections, not in PES packets (ISO/IEC 13818-1 Table 2-34; SCTE 35). */
const SECTION_TYPES: ReadonlySet<number> = new Set([0x05, 0x0a, 0x0b, 0x0c, 0x0d, 0x14, 0x16, 0x86])

/** A program may name hundreds; each becomes a playlist. */
const MOST_VIDEOS = 8
const MOST_AUDIOS = 16

/** As many fit into a PMT of one packet beside one video and one audio track. */
const MOST_DATA = 31

/** ISO/IEC 13818-1 2.4.4.9: a program without a clock. */
const NO_PCR_PID = 0x1fff

export function chooseTracks({ tracks }: Program, policy: TrackPolicy): TrackChoice {
  const carriable = tracks.filter((track) => policy === 'all' || isCompatible(track))
  const videos = carriable.filter(({ kind }) => kind === 'video').slice(0, MOST_VIDEOS)
  const audios = carriable
    .filter(({ kind }) => kind === 'audio')
    .toSorted((a, b) => rankOf(a) - rankOf(b))
    .slice(0, MOST_AUDIOS)
  const data = carriable
    .filter(({ kind, streamType }) => kind === 'data' && !SECTION_TYPES.has(streamType))
    .slice(0, MOST_DATA)
  const carried = new Set([...videos, ...audios, ...data])
  const leftOut = tracks.filter(
    (track) => !carried.has(track) && !SECTION_TYPES.has(track.streamType),
  )
  return { videos, audios, data, leftOut }
}

/**
 * What the main rendition carries.
 *
 * @param silentPids  of tracks that are passed over, since nothing comes of them
 */
export function selectTracks(
  program: Program,
  policy: TrackPolicy,
  silentPids: ReadonlySet<number> = new Set(),
): CarriedTracks {
  const { videos, audios, data } = chooseTracks(program, policy)
  const isHeard = ({ pid }: Track) => !silentPids.has(pid)
  return carryTracks(program, { video: videos.find(isHeard), audio: audios.find(isHeard), data })
}

/** These tracks of a program, with its clock where that is one of them or a PID of its own. */
export function carryTracks(
  program: Program,
  tracks: {
    readonly video?: Track | undefined
    readonly audio?: Track | undefined
    readonly data?: readonly Track[]
  },
): CarriedTracks {
  const { programNumber, pcrPid } = program
  const { video, audio, data = [] } = tracks
  const carried = {
    programNumber,
    pcrPid,
    ...(video && { video }),
    ...(audio && { audio }),
    ...(data.length > 0 && { data }),
  }
  const isOfClock = ({ pid }: Track) => pid === pcrPid
  const clockIsLeftOut = program.tracks.some(isOfClock) && !listTracks(carried).some(isOfClock)
  return clockIsLeftOut ? { ...carried, pcrPid: NO_PCR_PID } : carried
}

/** Whether both carry the same tracks, whatever is known of them. */
export function isSameSelection(a: CarriedTracks, b: CarriedTracks): boolean {
  const [pids, others] = [a, b].map(({ video, audio, data = [] }) =>
    [video, audio, ...data].map((track) => track?.pid).join(),
  )
  return pids === others
}

/** The carried tracks, video first, then audio. */
export function listTracks({ video, audio, data = [] }: CarriedTracks): Track[] {
  return [video, audio, ...data].filter((track) => track !== undefined)
}

function isCompatible({ codec, kind, streamType, descriptors }: Track): boolean {
  if (kind === 'video') return VIDEO_CODECS.has(codec)
  // DVB's AC-3 in private data is none that a player of HLS looks for.
  if (kind === 'audio') return AUDIO_RANKS[codec] !== undefined && streamType !== PRIVATE_PES
  // The metadata descriptors name the format (Timed Metadata for HTTP Live Streaming, section 2).
  const mayBeId3 = streamType === METADATA_PES || streamType === PRIVATE_PES
  return mayBeId3 && descriptors.includes('ID3 ')
}

function rankOf({ codec }: Track): number {
  return AUDIO_RANKS[codec] ?? LAST_RANK
}
