/**
 * Lost, damaged and reordered packets.
 *
 * @module
 */
import { AAC, TEST_PATTERN, TONE, X264, type ClipFolder } from '../clip.ts'
import { AUDIO_PID, editPackets, lose, split, swap, VIDEO_PID } from '../../../mpegts/edit.ts'
import type { MediaCase } from '../media-case.ts'
import { altered, flip, isFrame, isPsi, USUAL } from '../sources.ts'

/** 12 s, so that a loss comes after the three segments that fix the target duration. */
const longer = (clips: ClipFolder) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC], 12)
const LONGER = { audioFrames: 564, tracks: USUAL.tracks }

export const NETWORK: readonly MediaCase[] = [
  {
    name: 'joined-inside-a-packet',
    input: 'a stream joined within a packet of the first key frame',
    make: altered((clip) => {
      const [head] = split(clip, 30)
      const at = head.bytes.length - 100
      return { bytes: clip.bytes.subarray(at), sec: clip.sec - head.sec }
    }),
    playlist: { ...USUAL, durations: [2, 2, 2], videoFrames: 180, audioFrames: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'junk-between-packets',
    input: '3 extra bytes between two packets',
    make: altered((clip) =>
      editPackets(clip, (packet) =>
        isFrame(90)(packet) && packet.index === 1
          ? [Buffer.from([1, 0x47, 3]), packet.bytes]
          : packet.bytes,
      ),
    ),
    playlist: USUAL,
  },
  {
    name: 'junk-inside-a-packet',
    input: 'an extra byte within a packet',
    make: altered((clip) =>
      editPackets(clip, (packet) =>
        isFrame(90)(packet) && packet.index === 1
          ? [packet.bytes.subarray(0, 100), Buffer.of(0x47), packet.bytes.subarray(100)]
          : packet.bytes,
      ),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
  },
  {
    name: 'lost-inside-frames',
    input: 'a lost packet in every tenth frame, key frames excepted',
    make: altered((clip) =>
      lose(clip, ({ pid, unit, index }) => pid === VIDEO_PID && unit % 10 === 5 && index === 1),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS'],
  },
  {
    name: 'lost-inside-a-key-frame',
    input: 'a lost packet in a key frame: no segment starts there',
    make: altered(
      (clip) => lose(clip, (packet) => isFrame(240)(packet) && packet.index === 2),
      longer,
    ),
    playlist: { ...LONGER, durations: [2, 2, 2, 2.47, 1.53, 2], videoFrames: 359 },
    independent: false,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS', 'GOP_TOO_LONG'],
    findings: ['SEGMENT_WITHOUT_KEY_FRAME'],
    cmaf: { findings: ['SEGMENT_WITHOUT_KEY_FRAME', 'INDEPENDENT_MISSING'], offTicks: 1800 },
  },
  {
    name: 'lost-in-a-burst',
    input: 'a lost key frame, with the frames next to it',
    make: altered(
      (clip) => lose(clip, ({ pid, unit }) => pid === VIDEO_PID && unit >= 238 && unit <= 241),
      longer,
    ),
    playlist: { ...LONGER, durations: [2, 2, 2, 2.47, 1.53, 2], videoFrames: 356 },
    independent: false,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS', 'GOP_TOO_LONG', 'PTS_GAPS'],
    findings: ['SEGMENT_WITHOUT_KEY_FRAME'],
    cmaf: { findings: ['SEGMENT_WITHOUT_KEY_FRAME', 'INDEPENDENT_MISSING'], offTicks: 4800 },
  },
  {
    name: 'lost-audio',
    input: 'a lost packet in every fifth audio PES packet',
    make: altered((clip) =>
      lose(clip, ({ pid, unit, index }) => pid === AUDIO_PID && unit % 5 === 2 && index === 1),
    ),
    playlist: { ...USUAL, audioFrames: 299 },
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS'],
    cmaf: { findings: ['SEGMENT_LENGTH', 'DECODE_TIME_BREAK', 'EXTINF_INEXACT'], audioGaps: true },
  },
  {
    name: 'duplicates',
    input: 'duplicate packets',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, index }) => (index % 3 === 1 ? [bytes, bytes] : bytes)),
    ),
    playlist: USUAL,
  },
  {
    name: 'reordered',
    input: 'two packets of a frame in the wrong order',
    make: altered((clip) => swap(clip, (packet) => isFrame(90)(packet) && packet.index === 1)),
    playlist: USUAL,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS'],
  },
  {
    name: 'transport-errors',
    input: 'packets with transport_error_indicator',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, pid, unit, index }) =>
        pid === VIDEO_PID && unit % 10 === 5 && index === 1 ? flip(bytes, 1, 0x80) : bytes,
      ),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS', 'TRANSPORT_ERRORS'],
  },
  {
    name: 'scrambled',
    input: 'scrambled packets, which no player can decode',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, pid }) => (isPsi(pid) ? bytes : flip(bytes, 3, 0x80))),
    ),
    warnings: ['NO_MEDIA', 'SCRAMBLED'],
  },
  {
    name: 'psi-alone',
    input: 'PAT and PMT only',
    make: altered((clip) => lose(clip, ({ pid }) => !isPsi(pid))),
    warnings: ['NO_MEDIA'],
  },
  {
    name: 'no-transport-stream',
    input: 'bytes that are no transport stream',
    make: altered(({ bytes, sec }) => ({ bytes: Buffer.alloc(bytes.length, 0x55), sec })),
    warnings: ['NO_PAT'],
  },
]
