/**
 * What the segmenter has to say of a source, in words for whoever runs the encoder.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import type { TrackPolicy } from '../rendition/carried-tracks.ts'

export interface SourceWarning {
  /** Stable, upper case. */
  readonly code: string
  /** What is wrong, and what to set in the encoder. */
  readonly message: string
}

export function gopTooLong(targetSec: number): SourceWarning {
  return {
    code: 'GOP_TOO_LONG',
    message: `key frames come further apart than ${targetSec} s: segments are cut between them, where no player can start; set a key frame interval of at most ${targetSec} s in the encoder`,
  }
}

export function segmentTooLarge(maxBytes: number): SourceWarning {
  return {
    code: 'SEGMENT_TOO_LARGE',
    message: `a segment would hold more than ${maxBytes} bytes: lower the bitrate or the key frame interval of the encoder`,
  }
}

export function noKeyFrame(): SourceWarning {
  return {
    code: 'NO_KEY_FRAME',
    message:
      'pictures arrive, but no whole key frame at which a player could start: set a key frame interval in the encoder (intra refresh is none)',
  }
}

export function timestampJump(): SourceWarning {
  return {
    code: 'TIMESTAMP_JUMP',
    message:
      'timestamps jumped: the encoder set its clock anew, or nothing of it arrived for longer than a segment lasts',
  }
}

export function splicesMissed(): SourceWarning {
  return {
    code: 'SPLICE_MISSED',
    message:
      'a splice point (SCTE-35) was announced whose time never came: its splice time must be of the clock of the pictures, and the stream must go on until then',
  }
}

export function tooManySplices(): SourceWarning {
  return {
    code: 'TOO_MANY_SPLICES',
    message:
      'more splice points (SCTE-35) are announced than a playlist can list, so that some are left out: send each once for each event, and tell where a break ends',
  }
}

export function audioOutOfStep(): SourceWarning {
  return {
    code: 'AUDIO_OUT_OF_STEP',
    message:
      'the timestamps of the sound fit to no picture, so that it is left out: sound and picture must come of one clock, restart the encoder',
  }
}

export function trackSilent({ kind, pid }: Track): SourceWarning {
  return {
    code: 'TRACK_SILENT',
    message: `nothing comes of the ${kind} track that the encoder announces on PID ${pid}, and the stream goes on without it: check the ${kind} source of the encoder, or take the track out of its output`,
  }
}

export function variantsNotAligned(): SourceWarning {
  return {
    code: 'VARIANTS_NOT_ALIGNED',
    message:
      'the video tracks have their key frames at different times, so that players cannot switch between them: set the same key frame interval for all, and no scene cut detection (ffmpeg: -g 60 -keyint_min 60 -sc_threshold 0)',
  }
}

export function tracksLeftOut(tracks: readonly Track[], policy: TrackPolicy): SourceWarning {
  const names = tracks.map(
    ({ pid, label, codec, kind, streamType }) =>
      `PID ${pid} (${label ?? (codec === 'unknown' ? kind : codec)}, stream type 0x${streamType.toString(16).padStart(2, '0')})`,
  )
  const advice =
    policy === 'all'
      ? 'they are more than a presentation can hold: send fewer tracks'
      : 'up to 8 video tracks (H.264, H.265) and 16 audio tracks (AAC, MP3, MP2, AC-3 as stream type 0x81) are; players fail on others, and HLS_TRACKS=all carries them all the same'
  return { code: 'TRACKS_LEFT_OUT', message: `not carried: ${names.join(', ')}; ${advice}` }
}
