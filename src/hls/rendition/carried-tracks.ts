/**
 * Choice of the tracks of a program for its renditions. An unsupported track in transport stream makes hls.js fail on the
 * whole program or lose the audio, so such tracks are carried only with the policy `all`.
 *
 * @module
 */
import { NULL_PID } from '../../mpegts/packet.ts'
import { isCarriedInPes, StreamType } from '../../mpegts/psi/stream-type.ts'
import type { Codec, Program, Track } from '../../mpegts/track.ts'
import type { Format } from '../file-names.ts'
import { findUngrouped } from './audio-groups.ts'

/**
 * `compatible`: tracks that players support or ignore. `all`: in transport stream, all tracks sent in PES packets.
 */
export type TrackPolicy = 'compatible' | 'all'

/** Tracks of one rendition. */
export interface CarriedTracks {
  readonly programNumber: number
  /** PCR_PID in the outgoing PMT; `NULL_PID` if the PCR is on a track that is not carried. */
  readonly pcrPid: number
  readonly video?: Track
  readonly audio?: Track
  /** Timed metadata and, with the policy `all`, other data sent in PES packets. */
  readonly data?: readonly Track[]
}

/** Tracks of a program by their role in the presentation. */
export interface TrackChoice {
  /** Main video first, then the video of each further variant, in PMT order. */
  readonly videos: readonly Track[]
  /** Default audio first, then its alternatives: by codec, most widely supported first, then in PMT order. */
  readonly audios: readonly Track[]
  readonly data: readonly Track[]
  /** Tracks sent in PES packets that are not carried: players fail on them, or they exceed the maximum number. */
  readonly leftOut: readonly Track[]
  /** Audio tracks that are not carried: no track with the codec of the default audio has their language and role. */
  readonly ungrouped: readonly Track[]
}

const VIDEO_CODECS: ReadonlySet<Codec> = new Set(['h264', 'h265'])

/** Audio codecs that players support, by format. */
const AUDIO_CODECS: Readonly<Record<Format, ReadonlySet<Codec>>> = {
  ts: new Set(['aac', 'mp3', 'mp2', 'ac3']),
  cmaf: new Set(['aac', 'mp3', 'ac3', 'eac3']),
}

/** Rank of audio codecs by player support, 0 the best. */
const AUDIO_RANKS: Readonly<Partial<Record<Codec, number>>> = {
  aac: 0,
  mp3: 1,
  mp2: 1,
  ac3: 2,
  eac3: 2,
}
const LAST_RANK = 3

/** Maximum numbers of video and audio tracks: a program may list hundreds, and each becomes a playlist. */
const MAX_VIDEOS = 8
const MAX_AUDIOS = 16

/** Number of data tracks without descriptors that fit into a PMT of one packet, with one video and one audio track. */
const MAX_DATA = 31

export interface TrackChoiceOptions {
  /** PIDs of tracks that send no media; default: none. */
  readonly silentPids?: ReadonlySet<number>
  /** Format that carries the tracks; default: transport stream. */
  readonly format?: Format
}

export function chooseTracks(
  { tracks }: Program,
  policy: TrackPolicy,
  { silentPids = new Set(), format = 'ts' }: TrackChoiceOptions = {},
): TrackChoice {
  const carriesAll = policy === 'all' && format === 'ts'
  const carriable = tracks.filter((track) => carriesAll || isCompatible(track, format))
  const videos = carriable.filter(({ kind }) => kind === 'video').slice(0, MAX_VIDEOS)
  const ranked = carriable
    .filter(({ kind }) => kind === 'audio')
    .toSorted((a, b) => rankOf(a) - rankOf(b))
  const sending = ranked.filter(({ pid }) => !silentPids.has(pid))
  const ungrouped = policy === 'all' ? [] : findUngrouped(sending)
  const audios = ranked.filter((track) => !ungrouped.includes(track)).slice(0, MAX_AUDIOS)
  const data = carriable
    .filter(({ kind, streamType }) => kind === 'data' && isCarriedInPes(streamType))
    .slice(0, MAX_DATA)
  const known = new Set([...videos, ...audios, ...data, ...ungrouped])
  const leftOut = tracks.filter((track) => !known.has(track) && isCarriedInPes(track.streamType))
  return { videos, audios, data, leftOut, ungrouped }
}

/**
 * Tracks of the main rendition: of a choice, the first video and audio that sends media.
 *
 * @param silentPids  PIDs of tracks that send no media
 */
export function selectTracks(
  program: Program,
  { videos, audios, data }: TrackChoice,
  silentPids: ReadonlySet<number>,
): CarriedTracks {
  const sends = ({ pid }: Track) => !silentPids.has(pid)
  return carryTracks(program, { video: videos.find(sends), audio: audios.find(sends), data })
}

/** @returns these tracks of a program, with its PCR_PID unless the PCR is on a track that is not among them */
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
  const carriesPcr = ({ pid }: Track) => pid === pcrPid
  const isPcrDropped = program.tracks.some(carriesPcr) && !listTracks(carried).some(carriesPcr)
  return isPcrDropped ? { ...carried, pcrPid: NULL_PID } : carried
}

/** Whether both selections have the same PIDs; the parameters of the tracks may differ. */
export function isSameSelection(
  a: CarriedTracks | undefined,
  b: CarriedTracks | undefined,
): boolean {
  if (a === b) return true
  const [pids, others] = [a, b].map((carried) =>
    [carried?.video, carried?.audio, ...(carried?.data ?? [])].map((track) => track?.pid).join(),
  )
  return pids === others
}

/** Lead track, whose PES packets start the segments: the video or, without video, the audio. */
export function leadTrack(carried: CarriedTracks | undefined): Track | undefined {
  return carried?.video ?? carried?.audio
}

/** Carried tracks: video, audio, data. */
export function listTracks({ video, audio, data = [] }: CarriedTracks): Track[] {
  return [video, audio, ...data].filter((track) => track !== undefined)
}

function isCompatible(track: Track, format: Format): boolean {
  const { codec, kind, streamType, descriptors } = track
  if (kind === 'video') return VIDEO_CODECS.has(codec)
  // HLS players do not find AC-3 in private PES packets (DVB).
  const isFound = format === 'cmaf' || streamType !== StreamType.PRIVATE_PES
  if (kind === 'audio') return (AUDIO_CODECS[format].has(codec) || mayBeMp3(track)) && isFound
  // The metadata descriptors name the format (Timed Metadata for HTTP Live Streaming, section 2).
  const mayBeId3 = streamType === StreamType.METADATA_PES || streamType === StreamType.PRIVATE_PES
  return mayBeId3 && descriptors.includes('ID3 ')
}

/** MPEG audio counts as MP2 until a frame tells the layer. */
function mayBeMp3({ codec, parameters }: Track): boolean {
  return codec === 'mp2' && parameters === undefined
}

function rankOf({ codec }: Track): number {
  return AUDIO_RANKS[codec] ?? LAST_RANK
}
