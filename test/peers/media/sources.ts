/**
 * Clips that most cases use, and combinations of clips.
 *
 * @module
 */
import { StreamType } from '../../../src/mpegts/psi/stream-type.ts'
import { AAC, lavfi, TEST_PATTERN, TONE, X264, X265, type ClipFolder } from './clip.ts'
import {
  AUDIO_PID,
  continued,
  PAT_PID,
  PMT_PID,
  shift,
  VIDEO_PID,
  type Clip,
} from '../../mpegts/edit.ts'
import type { Source } from './media-case.ts'
import type { Step } from './publish.ts'

/** 8 s of H.264 with a key frame every 2 s, and AAC. */
export const usual = (clips: ClipFolder) =>
  clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC])
export const videoOnly = (clips: ClipFolder) => clips.encode([...TEST_PATTERN, ...X264])
export const audioOnly = (clips: ClipFolder) => clips.encode([...TONE, ...AAC])
export const small = (clips: ClipFolder) =>
  clips.encode([...lavfi('testsrc2=s=160x90:r=30'), ...TONE, ...X264, ...AAC])
export const h265 = (clips: ClipFolder) =>
  clips.encode([...TEST_PATTERN, ...TONE, ...X265, 'keyint=60:min-keyint=60:open-gop=0', ...AAC])

/** Expected playlist of `usual`, and of edits that lose nothing. */
export const USUAL = {
  durations: [2, 2, 2, 2],
  videoFrames: 240,
  audioFrames: 376,
  tracks: '256:1b,257:f',
}
export const TWICE = {
  durations: [2, 2, 2, 2, 2, 2, 2, 2],
  videoFrames: 480,
  audioFrames: 752,
  tracks: [USUAL.tracks, USUAL.tracks],
}
export const H264_AAC = 'avc1.42c00d,mp4a.40.2'

/** Edits a clip without a change of its media. */
export const altered =
  (alter: (clip: Clip) => Clip | readonly Step[], original = usual) =>
  async (clips: ClipFolder): Promise<Source> => {
    const clip = await original(clips)
    const result = alter(clip)
    return { steps: 'bytes' in result ? [result] : result, originals: [clip] }
  }

/** Clips in sequence on one connection, each with its own layout or timeline. */
export const sequence =
  (...makes: ((clips: ClipFolder) => Promise<Clip>)[]) =>
  async (clips: ClipFolder): Promise<Source> => {
    const originals = await Promise.all(makes.map((make) => make(clips)))
    return { steps: continued(...originals), originals }
  }

export const shifted =
  (make: (clips: ClipFolder) => Promise<Clip>, sec: number) => (clips: ClipFolder) =>
    make(clips).then((clip) => shift(clip, sec))

export const USUAL_MAP = [
  { pid: VIDEO_PID, streamType: StreamType.H264 },
  { pid: AUDIO_PID, streamType: StreamType.AAC_ADTS },
]

export const isPsi = (pid: number) => pid === PAT_PID || pid === PMT_PID

export const isFrame = (unit: number) => (packet: { pid: number; unit: number }) =>
  packet.pid === VIDEO_PID && packet.unit === unit

export const flip = (bytes: Buffer, at: number, mask: number) => {
  bytes[at] = bytes[at]! ^ mask
  return bytes
}
