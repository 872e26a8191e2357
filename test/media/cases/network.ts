/**
 * What networks and receivers do to packets.
 *
 * @module
 */
import { AUDIO_PID, editPackets, lose, split, swap, VIDEO_PID } from '../edit.ts'
import type { MediaCase } from '../media-case.ts'
import { altered, flip, isPicture, isPsi, USUAL } from '../sources.ts'

export const NETWORK: readonly MediaCase[] = [
  {
    name: 'joined-inside-a-packet',
    what: 'the first byte is in the middle of a packet of the first key frame',
    make: altered((clip) => {
      const [head] = split(clip, 30)
      const at = head.bytes.length - 100
      return { bytes: clip.bytes.subarray(at), sec: clip.sec - head.sec }
    }),
    playlist: { ...USUAL, durations: [2, 2, 2], pictures: 180, sounds: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'junk-between-packets',
    what: '3 bytes too many between two packets',
    make: altered((clip) =>
      editPackets(clip, (packet) =>
        isPicture(90)(packet) && packet.index === 1
          ? [Buffer.from([1, 0x47, 3]), packet.bytes]
          : packet.bytes,
      ),
    ),
    playlist: USUAL,
  },
  {
    name: 'junk-inside-a-packet',
    what: 'a byte too many inside a packet',
    make: altered((clip) =>
      editPackets(clip, (packet) =>
        isPicture(90)(packet) && packet.index === 1
          ? [packet.bytes.subarray(0, 100), Buffer.of(0x47), packet.bytes.subarray(100)]
          : packet.bytes,
      ),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
  },
  {
    name: 'lost-inside-pictures',
    what: 'a packet of every tenth picture that is no key frame is lost',
    make: altered((clip) =>
      lose(clip, ({ pid, unit, index }) => pid === VIDEO_PID && unit % 10 === 5 && index === 1),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS'],
  },
  {
    name: 'lost-inside-a-key-frame',
    what: 'a packet of a key frame is lost: no segment starts with it',
    make: altered((clip) => lose(clip, (packet) => isPicture(120)(packet) && packet.index === 2)),
    playlist: { ...USUAL, durations: [2, 2.47, 1.53, 2], pictures: 239 },
    independent: false,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS', 'GOP_TOO_LONG'],
  },
  {
    name: 'lost-in-a-burst',
    what: 'a whole key frame and its neighbours are lost',
    make: altered((clip) =>
      lose(clip, ({ pid, unit }) => pid === VIDEO_PID && unit >= 118 && unit <= 121),
    ),
    playlist: { ...USUAL, durations: [2, 2.47, 1.53, 2], pictures: 236 },
    independent: false,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS', 'GOP_TOO_LONG', 'PTS_GAPS'],
  },
  {
    name: 'lost-sound',
    what: 'a packet of every fifth PES packet of the sound is lost',
    make: altered((clip) =>
      lose(clip, ({ pid, unit, index }) => pid === AUDIO_PID && unit % 5 === 2 && index === 1),
    ),
    playlist: { ...USUAL, sounds: 299 },
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS'],
  },
  {
    name: 'duplicates',
    what: 'packets that come twice',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, index }) => (index % 3 === 1 ? [bytes, bytes] : bytes)),
    ),
    playlist: USUAL,
  },
  {
    name: 'reordered',
    what: 'two packets of a picture in the wrong order',
    make: altered((clip) => swap(clip, (packet) => isPicture(90)(packet) && packet.index === 1)),
    playlist: USUAL,
    bytesOut: 'damaged',
    warnings: ['CONTINUITY_ERRORS'],
  },
  {
    name: 'transport-errors',
    what: 'packets that a demodulator marked as broken',
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
    what: 'scrambled packets: nobody could decode them',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, pid }) => (isPsi(pid) ? bytes : flip(bytes, 3, 0x80))),
    ),
    warnings: ['NO_MEDIA', 'SCRAMBLED'],
  },
  {
    name: 'psi-alone',
    what: 'PAT and PMT, and nothing else',
    make: altered((clip) => lose(clip, ({ pid }) => !isPsi(pid))),
    warnings: ['NO_MEDIA'],
  },
  {
    name: 'no-transport-stream',
    what: 'something else than a transport stream',
    make: altered(({ bytes, sec }) => ({ bytes: Buffer.alloc(bytes.length, 0x55), sec })),
    warnings: ['NO_PAT'],
  },
]
