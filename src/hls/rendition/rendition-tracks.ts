/**
 * Renditions of a program, with the tracks that each carries.
 *
 * - Transport stream: the main one, a variant for each further video track with the audio of the main rendition, and a
 *   rendition for each further audio track.
 * - CMAF: one for each track.
 *
 * An unsupported track in transport stream makes hls.js fail on the whole program or lose the audio, so such tracks are
 * carried only with the policy `all`.
 *
 * @module
 */
import { NULL_PID } from '../../mpegts/packet.ts'
import { isCarriedInPes, StreamType } from '../../mpegts/psi/stream-type.ts'
import { lacksChannels, type Codec, type Program, type Track } from '../../mpegts/track.ts'
import type { Format, RenditionName } from '../file-names.ts'
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
  cmaf: new Set(['aac', 'mp3', 'ac3', 'eac3', 'opus']),
}

/** Rank of audio codecs by player support, 0 the best. */
const AUDIO_RANKS: Readonly<Partial<Record<Codec, number>>> = {
  aac: 0,
  mp3: 1,
  mp2: 1,
  ac3: 2,
  eac3: 2,
  opus: 2,
}
const LAST_RANK = 3

/** Maximum numbers of video and audio tracks: a program may list hundreds, and each becomes a playlist. */
const MAX_VIDEOS = 8
const MAX_AUDIOS = 16

/** Number of data tracks without descriptors that fit into a PMT of one packet, with one video and one audio track. */
const MAX_DATA = 31

interface TrackChoiceOptions {
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
function carryTracks(
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
  // The channels of Opus are in a descriptor alone.
  if (codec === 'opus' && track.parameters?.channels === undefined) return false
  if (lacksChannels(track)) return false
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

export interface RenditionPolicy {
  readonly formats: readonly Format[]
  readonly policy: TrackPolicy
}

/**
 * @param main  tracks of the main rendition
 * @param silentPids  PIDs of tracks that send no media
 * @returns the main rendition first, or the first of CMAF
 */
export function chooseRenditions(
  program: Program,
  { formats, policy }: RenditionPolicy,
  main: CarriedTracks,
  silentPids: ReadonlySet<number>,
): Map<RenditionName, CarriedTracks> {
  return new Map([
    ...(formats.includes('ts') ? chooseTs(program, policy, main, silentPids) : []),
    ...(formats.includes('cmaf') ? chooseCmaf(program, policy, silentPids) : []),
  ])
}

function chooseTs(
  program: Program,
  policy: TrackPolicy,
  main: CarriedTracks,
  silentPids: ReadonlySet<number>,
): [RenditionName, CarriedTracks][] {
  const { videos, audios } = chooseTracks(program, policy, { silentPids })
  const variants = videos
    .slice(1)
    .map((video, index): [RenditionName, CarriedTracks] => [
      `video-${index + 2}`,
      carryTracks(program, { video, audio: main.audio }),
    ])
  const alternatives = audios
    .slice(1)
    .map((audio, index): [RenditionName, CarriedTracks] => [
      `audio-${index + 2}`,
      carryTracks(program, { audio }),
    ])
  return [['main', main], ...variants, ...alternatives]
}

/** Timed metadata is in the first video or, without video, in the first audio. */
function chooseCmaf(
  program: Program,
  policy: TrackPolicy,
  silentPids: ReadonlySet<number>,
): [RenditionName, CarriedTracks][] {
  const { videos, audios, data } = chooseTracks(program, policy, { silentPids, format: 'cmaf' })
  const tracks = [
    ...videos.map((video, index) => ({ name: `cmaf-video-${index + 1}` as const, video })),
    ...audios.map((audio, index) => ({ name: `cmaf-audio-${index + 1}` as const, audio })),
  ]
  return tracks
    .map(({ name, ...track }, index): [RenditionName, CarriedTracks] => [
      name,
      carryTracks(program, { ...track, ...(index === 0 && { data }) }),
    ])
    .filter(([, { video, audio }]) => ![video, audio].some((it) => it && silentPids.has(it.pid)))
}

/**
 * Renditions of the presentation, the main one first. Another one of transport stream is not listed while the main
 * rendition carries its track in place of a silent track.
 */
export function listRenditions(
  renditions: ReadonlyMap<RenditionName, CarriedTracks>,
): RenditionName[] {
  const main = renditions.get('main')
  const isMain = ({ video, audio }: CarriedTracks) =>
    video === undefined ? audio?.pid === main?.audio?.pid : video.pid === main?.video?.pid
  return [...renditions]
    .filter(([name, carried]) => !/^(video|audio)-/.test(name) || !isMain(carried))
    .map(([name]) => name)
}
