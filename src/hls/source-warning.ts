/**
 * Facts about a source in words for whoever runs the encoder.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'
import type { SourceFact } from './source-fact.ts'

export interface SourceWarning {
  /** Stable, upper case. */
  readonly code: string
  /** What is wrong, and what to set in the encoder. */
  readonly message: string
}

type FactOf<Code> = Extract<SourceFact, { readonly code: Code }>

/** @returns what is wrong, and what to set in the encoder */
const MESSAGES: { readonly [Code in SourceFact['code']]: (fact: FactOf<Code>) => string } = {
  GOP_TOO_LONG: ({ targetSec }) =>
    `key frames come further apart than ${targetSec} s: segments are cut between them, where no player can start; set a key frame interval of at most ${targetSec} s in the encoder`,
  SEGMENT_TOO_LARGE: ({ maxBytes }) =>
    `a segment would hold more than ${maxBytes} bytes: lower the bitrate or the key frame interval of the encoder`,
  NO_KEY_FRAME: () =>
    'pictures arrive, but no whole key frame at which a player could start: set a key frame interval in the encoder (intra refresh is none)',
  TIMESTAMP_JUMP: () =>
    'timestamps jumped: the encoder set its clock anew, or nothing of it arrived for longer than a segment lasts',
  SPLICE_MISSED: () =>
    'a splice point (SCTE-35) was announced whose time never came: its splice time must be of the clock of the pictures, and the stream must go on until then',
  TOO_MANY_SPLICES: () =>
    'more splice points (SCTE-35) are announced than a playlist can list, so that some are left out: send each once for each event, and tell where a break ends',
  AUDIO_OUT_OF_STEP: () =>
    'the timestamps of the sound fit to no picture, so that it is left out: sound and picture must come of one clock, restart the encoder',
  TRACK_SILENT: ({ track }) => trackSilent(track),
  VARIANTS_NOT_ALIGNED: () =>
    'the video tracks have their key frames at different times, so that players cannot switch between them: set the same key frame interval for all, and no scene cut detection (ffmpeg: -g 60 -keyint_min 60 -sc_threshold 0)',
  TRACKS_LEFT_OUT: ({ tracks, tooMany }) => tracksLeftOut(tracks, tooMany),
}

export function describeFact(fact: SourceFact): SourceWarning {
  const describe = MESSAGES[fact.code] as (fact: SourceFact) => string
  return { code: fact.code, message: describe(fact) }
}

function trackSilent({ kind, pid }: Track): string {
  return `nothing comes of the ${kind} track that the encoder announces on PID ${pid}, and the stream goes on without it: check the ${kind} source of the encoder, or take the track out of its output`
}

function tracksLeftOut(tracks: readonly Track[], tooMany: boolean): string {
  const names = tracks.map(
    ({ pid, label, codec, kind, streamType }) =>
      `PID ${pid} (${label ?? (codec === 'unknown' ? kind : codec)}, stream type 0x${streamType.toString(16).padStart(2, '0')})`,
  )
  const advice = tooMany
    ? 'they are more than a presentation can hold: send fewer tracks'
    : 'up to 8 video tracks (H.264, H.265) and 16 audio tracks (AAC, MP3, MP2, AC-3 as stream type 0x81) are; players fail on others, and HLS_TRACKS=all carries them all the same'
  return `not carried: ${names.join(', ')}; ${advice}`
}
