/** Each rule on MPEG-TS media and on the attributes of variants, broken once in a session of our own. */
import t from 'tap'
import type { Exchange } from '../../../src/check/exchange.ts'
import { RULES } from '../../../src/check/rules/table.ts'
import { movePesTimes, readPesTimes } from '../../../src/pace/packet-times.ts'
import { patSection, TsBuilder, tsPacket } from '../../mpegts/ts-builder.ts'
import { recordSession } from '../session.ts'
import { breaks, editMedia, editMultivariant, judge, keepsAll, load, playlist } from './fixture.ts'
import {
  editMediaBytes,
  editOne,
  editSection,
  inTransportStream,
  mapPackets,
  renumber,
  replaceBytes,
  shiftTimes,
  TABLES_BYTES,
} from './media-fixture.ts'

const MAP_PID = 4096
const VIDEO_PID = 256
const AUDIO_PID = 257

/** Index of the segment or part that is broken; part 10 starts with a key frame. */
const SEGMENT = 4
const KEY_PART = 10

const classic = await recordSession({ format: 'ts' })
const long = await recordSession({ format: 'ts', reconnects: true })
const cmaf = await recordSession()
/** Low latency in MPEG-TS, which breaks TS_PARTS. */
const lowLatency = inTransportStream(cmaf, classic)
const BUT_TS_PARTS = RULES.filter(({ id }) => id !== 'TS_PARTS')
/** What a low-latency player loads. */
const partsOnly = lowLatency.filter(({ role }) => role !== 'segment')

/** Compresses the times of all packets, towards the first one. */
function compress(bytes: Buffer, factor: number): Buffer {
  let first: number | undefined
  return mapPackets(bytes, ({ bytes: packet }) => {
    const times = readPesTimes(packet, 0)
    if (times === undefined) return packet
    first ??= times.dtsTicks
    movePesTimes(packet, 0, Math.round((times.dtsTicks - first) * (factor - 1)) + 2 ** 33)
    return packet
  })
}

/** Shifts segments from an index on, in all playlists. */
function jump(exchanges: readonly Exchange[], sec: number): Exchange[] {
  return editMediaBytes(exchanges, ({ bytes, index }) =>
    index < SEGMENT ? bytes : shiftTimes(bytes, sec),
  )
}

function dropPids(bytes: Buffer, ...pids: readonly number[]): Buffer {
  return mapPackets(bytes, (packet) => (pids.includes(packet.pid) ? [] : packet.bytes))
}

/** Puts packets behind the tables. */
function insert(bytes: Buffer, ...packets: readonly Buffer[]): Buffer {
  return Buffer.concat([bytes.subarray(0, TABLES_BYTES), ...packets, bytes.subarray(TABLES_BYTES)])
}

const withoutKey = (bytes: Buffer) => replaceBytes(bytes, '0000016588', '0000016188')

/** Moves the last packet of the last video PES packet into the next segment. */
function cutPes(exchanges: readonly Exchange[]): Exchange[] {
  let moved: Buffer = Buffer.alloc(0)
  const cut = editOne(exchanges, SEGMENT, (bytes) => {
    for (let at = bytes.length - 188; at > 0; at -= 188) {
      const pid = bytes.readUInt16BE(at + 1) & 0x1fff
      if (pid !== VIDEO_PID || (bytes[at + 1]! & 0x40) !== 0) continue
      moved = Buffer.from(bytes.subarray(at, at + 188))
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 188)])
    }
    return bytes
  })
  return editOne(cut, SEGMENT + 1, (bytes) => insert(bytes, moved))
}

/** Makes the second frame the key frame instead of the first. */
function delayKey(bytes: Buffer): Buffer {
  let slices = 0
  return mapPackets(withoutKey(bytes), ({ bytes: packet, pid }) => {
    const at = pid === VIDEO_PID ? packet.indexOf(Buffer.from('00000141', 'hex')) : -1
    if (at >= 0 && slices++ === 0) packet[at + 3] = 0x65
    return packet
  })
}

const nulls = Array.from({ length: 4 }, () => tsPacket({ pid: 0x1fff, payload: Buffer.alloc(184) }))
const newMap = (packet: Buffer) => editSection(packet, 'e101', 'e12c')

const SEGMENT_CASES: Readonly<Record<string, () => Exchange[]>> = {
  SEGMENT_LENGTH: () => editOne(classic, SEGMENT, (bytes) => compress(bytes, 0.8)),
  TIMESTAMPS_BREAK: () => jump(classic, 3),
  TRACKS_CHANGE: () =>
    editMediaBytes(classic, ({ bytes, playlist, index }) =>
      playlist !== 'playlist' || index < SEGMENT
        ? bytes
        : mapPackets(bytes, ({ pid, bytes: packet }) => {
            if (pid === AUDIO_PID) packet.writeUInt16BE((packet.readUInt16BE(1) & 0xe000) | 300, 1)
            return pid === MAP_PID ? newMap(packet) : packet
          }),
    ),
  RENDITIONS_APART: () =>
    editMediaBytes(classic, ({ bytes, playlist }) =>
      playlist === 'audio-2' ? shiftTimes(bytes, 1) : bytes,
    ),
  COUNTERS_BREAK: () =>
    editMediaBytes(classic, ({ bytes, index }) =>
      mapPackets(bytes, ({ pid, bytes: packet }) => {
        if (pid !== AUDIO_PID || index < SEGMENT) return packet
        packet[3] = (packet[3]! & 0xf0) | ((packet[3]! + 5) & 15)
        return packet
      }),
    ),
  ENCODING_CHANGE: () =>
    editMediaBytes(classic, ({ bytes, index }) =>
      index < SEGMENT ? replaceBytes(bytes, '67640009', '67640008') : bytes,
    ),
  STARTS_APART: () => editMediaBytes(classic, ({ bytes }) => shiftTimes(bytes, 1, AUDIO_PID)),
  SEGMENT_NOT_INDEPENDENT: () => editOne(classic, SEGMENT, withoutKey),
  SEGMENT_WITHOUT_KEY_FRAME: () =>
    editOne(
      editMedia(classic, (text) => text.replace('#EXT-X-INDEPENDENT-SEGMENTS\n', '')),
      SEGMENT,
      withoutKey,
    ),
  FORMAT_UNKNOWN: () => editOne(classic, SEGMENT, () => Buffer.from('<html>not found</html>')),
  TS_SYNC: () => editOne(classic, SEGMENT, (bytes) => Buffer.concat([bytes, Buffer.alloc(7)])),
  TS_TABLES_MISSING: () => renumber(editOne(classic, SEGMENT, (bytes) => dropPids(bytes, 0, 4096))),
  TS_PROGRAMS: () =>
    renumber(
      editOne(classic, SEGMENT, (bytes) => {
        const pat = patSection([
          [1, MAP_PID],
          [2, 4097],
        ])
        return mapPackets(bytes, ({ pid, bytes: packet }) =>
          pid === 0 ? new TsBuilder().sections(0, pat).packets : packet,
        )
      }),
    ),
  CHANGE_INSIDE: () =>
    renumber(
      editOne(classic, SEGMENT, (bytes) => {
        const map = bytes.subarray(188, 376)
        const third = 188 * Math.floor(bytes.length / 564)
        const [start, middle] = [bytes.subarray(0, third), bytes.subarray(third, 2 * third)]
        return Buffer.concat([start, newMap(map), middle, map, bytes.subarray(2 * third)])
      }),
    ),
  TS_CONTINUITY: () =>
    editOne(classic, SEGMENT, (bytes) =>
      mapPackets(bytes, ({ pid, unit, index, bytes: packet }) =>
        pid === VIDEO_PID && unit === 0 && index === 5 ? [] : packet,
      ),
    ),
  TS_TRANSPORT_ERROR: () =>
    editOne(classic, SEGMENT, (bytes) => {
      const packet = tsPacket({ pid: 0x1fff, payload: Buffer.alloc(184), transportError: true })
      return insert(bytes, packet)
    }),
  TS_PES_CUT: () => cutPes(classic),
  TS_PTS_MISSING: () =>
    editOne(classic, SEGMENT, (bytes) =>
      mapPackets(bytes, ({ pid, unit, index, bytes: packet }) =>
        pid === AUDIO_PID && unit === 9 && index === 0
          ? replaceBytes(packet, '808005', '800005')
          : packet,
      ),
    ),
  TS_TABLES_NOT_FIRST: () =>
    editOne(classic, SEGMENT, (bytes) =>
      Buffer.concat([tsPacket({ pid: 17, payload: Buffer.alloc(184) }), bytes]),
    ),
  TS_NULL_PACKETS: () => editOne(classic, 5, (bytes) => Buffer.concat([bytes, ...nulls])),
}

for (const [id, mutate] of Object.entries(SEGMENT_CASES)) {
  t.test(`finds in segments: ${id}`, async (t) => {
    const { evidence } = breaks(t, id, mutate())
    for (const [claim, seen] of evidence) t.ok(claim.text.length > 0 && seen.url !== undefined)
  })
}

const PART_CASES: Readonly<Record<string, () => Exchange[]>> = {
  PART_LENGTH: () => editOne(partsOnly, KEY_PART + 1, (bytes) => compress(bytes, 0.3)),
  PARTS_DIFFER: () =>
    editMediaBytes(lowLatency, ({ exchange, playlist, index, bytes }) =>
      exchange.role === 'segment' && playlist === 'playlist' && index === SEGMENT
        ? shiftTimes(bytes, 0.05)
        : bytes,
    ),
  PART_NOT_INDEPENDENT: () => editOne(partsOnly, KEY_PART, withoutKey),
  PART_NOT_MARKED: () =>
    editMedia(partsOnly, (text) => text.replace('e-p0.ts",INDEPENDENT=YES', 'e-p0.ts"')),
  PART_KEY_FRAME_LATE: () => editOne(partsOnly, KEY_PART, delayKey),
  PART_WITHOUT_AUDIO: () =>
    renumber(editOne(partsOnly, KEY_PART, (bytes) => dropPids(bytes, AUDIO_PID))),
  PART_TABLES_MISSING: () =>
    renumber(editOne(partsOnly, KEY_PART + 1, (bytes) => dropPids(bytes, 0, MAP_PID))),
}

t.test('parts in MPEG-TS end Shaka and video.js; fMP4 and whole segments do not', async (t) => {
  const { rule, count } = breaks(t, 'TS_PARTS', lowLatency)
  t.equal(count, 1, 'once for the playlist')
  t.match(rule.effects, { shaka: { severity: 'stops' }, videojs: { severity: 'stops' } })
  t.strictSame(Object.keys(rule.effects), ['shaka', 'videojs'])
  keepsAll(t, cmaf)
  keepsAll(t, classic)
})

for (const [id, mutate] of Object.entries(PART_CASES)) {
  t.test(`finds in parts: ${id}`, async (t) => {
    breaks(t, id, mutate(), id, BUT_TS_PARTS)
  })
}

/** Peak of segments with audio, as the last reports of the session have it. */
const peakBps = Number(
  /up to (\d+)/.exec(
    judge(editMultivariant(classic, (text) => text.replace(/:BANDWIDTH=\d+/, ':BANDWIDTH=1')))
      .flatMap(({ evidence }) => evidence)
      .map(([, { text }]) => text)
      .join(),
  )?.[1],
)
const bandwidth = (bps: number) => (text: string) =>
  text.replace(/:BANDWIDTH=\d+,AVERAGE-BANDWIDTH=\d+/, `:BANDWIDTH=${Math.round(bps)}`)

const VARIANT_CASES: Readonly<Record<string, (text: string) => string>> = {
  CODECS_INCOMPLETE: (text) => text.replace('mp4a.40.2', 'ac-3'),
  VIDEO_RANGE_WRONG: (text) => text.replace(',RESOLUTION', ',VIDEO-RANGE=PQ,RESOLUTION'),
  BANDWIDTH_BELOW_PEAK: bandwidth(peakBps / 2),
  BANDWIDTH_TIGHT: bandwidth(peakBps * 0.9),
  RESOLUTION_WRONG: (text) => text.replace('160x90', '320x180'),
  FRAME_RATE_WRONG: (text) => text.replace('FRAME-RATE=15.000', 'FRAME-RATE=30.000'),
  CODECS_INEXACT: (text) => text.replace('avc1.640009', 'avc1.42e009'),
  AVERAGE_BANDWIDTH_LOW: (text) => text.replace(/AVERAGE-BANDWIDTH=\d+/, 'AVERAGE-BANDWIDTH=80000'),
}

for (const [id, edit] of Object.entries(VARIANT_CASES)) {
  t.test(`finds in the multivariant playlist: ${id}`, async (t) => {
    breaks(t, id, editMultivariant(id.startsWith('AVERAGE') ? long : classic, edit))
  })
}

t.test('judges no media that is a gap or encrypted', async (t) => {
  const broken = editOne(classic, SEGMENT, (bytes) => bytes.subarray(0, 999))
  const name = `e-${SEGMENT}.ts`
  const tagged = (tag: string, end: string) =>
    editMedia(broken, (text) =>
      text.replace(/#EXTINF:[^\n]*\ne-4\.ts/, (segment) => `${tag}${segment}${end}`),
    )
  t.ok(judge(broken).length > 0)
  const isJudged = (exchanges: readonly Exchange[]) =>
    judge(exchanges).some(({ evidence }) => JSON.stringify(evidence).includes(name))
  t.ok(isJudged(broken))
  t.notOk(isJudged(tagged('#EXT-X-GAP\n', '')))
  t.notOk(isJudged(tagged('#EXT-X-KEY:METHOD=AES-128,URI="key"\n', '\n#EXT-X-KEY:METHOD=NONE')))
})

t.test('finds packed audio without the time of its first sample', async (t) => {
  const head = Buffer.from('fff14c40017ffc', 'hex')
  const frame = Buffer.concat([head, Buffer.alloc(4)])
  const audio = Buffer.concat(Array<Buffer>(94).fill(frame))
  const url = 'https://media.example/video/studio/a-0.ts'
  const text = playlist([{ msn: 0 }, { msn: 1 }, { msn: 2 }])
  const first = load(text, 6)
  const segment = { ...load('', 6), role: 'segment', url, playlistUrl: first.url } as const
  const headers = {
    'access-control-allow-origin': '*',
    'cache-control': 'public, max-age=600',
    'content-type': 'audio/aac',
    etag: '"a-0"',
  }
  breaks(t, 'AUDIO_TIMESTAMP_MISSING', [
    first,
    { ...segment, reply: { ...segment.reply!, ...{ url, headers, body: audio } } },
  ])
})
