/** Each rule on CMAF, and those on all media that fMP4 can break, broken once in a session of our own. */
import t from 'tap'
import type { Exchange, RequestRole } from '../../../src/check/exchange.ts'
import { FIRST_PART, PART_TARGET_SEC, recordCmaf, type CmafOptions } from '../cmaf-session.ts'
import { withBody } from '../session.ts'
import { breaks, editMedia, editMultivariant, judge, keepsAll } from './fixture.ts'
import { editMediaBytes } from './media-fixture.ts'

import { makeBox } from '../media/box-builder.ts'

const VIDEO = 'cmaf-video-1'

/** Segment that is broken, with parts of its own; the first of them, among those that are loaded, has a key frame. */
const SEGMENT = 8
const KEY_PART = 5
const LAST_PART = 14

const SPS = Buffer.from('00000004674d4028', 'hex')

const good = recordCmaf()
const partsOnly = withoutSegments(good)
const segmentsOnly = good.filter(({ role }) => role !== 'part')
const oneSegment = good.filter(
  ({ role, url }) => role !== 'segment' || url.endsWith(`v1-${SEGMENT}.m4s`),
)

function withoutSegments(exchanges: readonly Exchange[]): Exchange[] {
  return exchanges.filter(({ role }) => role !== 'segment')
}

/** Adds to the decode times of all fragments. */
function delay(bytes: Buffer, ticks: number): Buffer {
  for (let at = bytes.indexOf('tfdt'); at >= 0; at = bytes.indexOf('tfdt', at + 4)) {
    bytes.writeBigUInt64BE(bytes.readBigUInt64BE(at + 8) + BigInt(ticks), at + 8)
  }
  return bytes
}

/** Delays video from a segment on. */
function delayFrom(exchanges: readonly Exchange[], ticks: number): Exchange[] {
  return editMediaBytes(exchanges, ({ exchange, playlist, index, bytes }) => {
    const first = exchange.role === 'part' ? KEY_PART : SEGMENT
    return playlist === VIDEO && index >= first ? delay(bytes, ticks) : bytes
  })
}

function delayAudio(exchanges: readonly Exchange[], sec: number): Exchange[] {
  return editMediaBytes(exchanges, ({ playlist, bytes }) =>
    playlist === VIDEO ? bytes : delay(bytes, sec * 48_000),
  )
}

function editVideo(
  exchanges: readonly Exchange[],
  search: string | RegExp,
  by: string,
): Exchange[] {
  return editMedia(exchanges, (text, _, url) =>
    url.includes(VIDEO) ? text.replace(search, by) : text,
  )
}

/** Edits the segment, or the part, of an index. */
function edit(
  exchanges: readonly Exchange[],
  role: RequestRole,
  index: number,
  change: (bytes: Buffer) => Buffer,
): Exchange[] {
  return editMediaBytes(exchanges, (media) => {
    const isMeant = media.exchange.role === role && media.playlist === VIDEO
    return isMeant && media.index === index ? change(media.bytes) : media.bytes
  })
}

/** Replaces the type of the sample entry of video in the init segment. */
function renameEntry(exchanges: readonly Exchange[], type: string): Exchange[] {
  return exchanges.map((exchange) => {
    if (exchange.role !== 'init') return exchange
    const body = Buffer.from(exchange.reply!.body)
    const at = body.indexOf('avc1')
    if (at >= 0) body.write(type, at, 'latin1')
    return { ...exchange, reply: { ...exchange.reply!, body } }
  })
}

function renameCodec(exchanges: readonly Exchange[], type: string): Exchange[] {
  return editMultivariant(exchanges, (text) => text.replace('avc1', type))
}

/** Renames the init segment of video from a segment on, and loads both. */
function changeMap(exchanges: readonly Exchange[], before: string): Exchange[] {
  const tag = `${before}#EXT-X-MAP:URI="e-v2.mp4"\n`
  const start = '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:05'
  return editVideo(exchanges, start, tag + start).flatMap((exchange) => {
    const url = exchange.url.replace('v1.mp4', 'v2.mp4')
    if (url === exchange.url) return [exchange]
    return [exchange, { ...exchange, url, reply: { ...exchange.reply!, url } }]
  })
}

/** Adds one to the offset of the samples of a fragment. */
function shiftSamples(bytes: Buffer): Buffer {
  const at = bytes.indexOf('trun') + 12
  bytes.writeInt32BE(bytes.readInt32BE(at) + 1, at)
  return bytes
}

/** Shortens the samples of a fragment that all last as long. */
function shortenSamples(bytes: Buffer): Buffer {
  const at = bytes.indexOf('tfhd') + 12
  bytes.writeUInt32BE(bytes.readUInt32BE(at) * 0.3, at)
  return bytes
}

const duration = (sec: string) =>
  editVideo(partsOnly, 'DURATION=0.20000,URI="e-v1-p41', `DURATION=${sec},URI="e-v1-p41`)
const extinf = (sec: string) =>
  editVideo(segmentsOnly, '1.00000,\ne-v1-4.m4s', `${sec},\ne-v1-4.m4s`)

/** Index of the first sample of the part that is broken. */
const KEY_SAMPLE = (FIRST_PART + KEY_PART) * 3

/** Makes another sample the sync sample of a part, or none; the playlist stays. */
function moveKey(to: number): Exchange[] {
  const edited = recordCmaf({
    editVideo: (sample, index) => {
      if (index === KEY_SAMPLE) return { ...sample, sync: to === KEY_SAMPLE }
      return index === to ? { ...sample, sync: true } : sample
    },
  })
  const media = good.map((exchange, index) =>
    exchange.role === 'playlist' ? exchange : edited[index]!,
  )
  return withoutSegments(media)
}

/** Puts a NAL unit before samples. */
const withSets = (indexes: readonly number[], nal = SPS) =>
  recordCmaf({
    editVideo: (sample, index) => {
      if (!indexes.includes(index)) return sample
      const { chunks, sizeBytes } = sample
      return { ...sample, chunks: [nal, ...chunks], sizeBytes: sizeBytes + nal.length }
    },
  })

/** Gives the PPS in the init segment id 1 instead of 0. */
function renameSet(exchanges: readonly Exchange[]): Exchange[] {
  return exchanges.map((exchange) => {
    if (exchange.role !== 'init') return exchange
    const hex = Buffer.from(exchange.reply!.body).toString('hex').replace('68ef3cb0', '685bcf2c')
    return { ...exchange, reply: { ...exchange.reply!, body: Buffer.from(hex, 'hex') } }
  })
}

/** Puts several frames into a sample. */
const joinSamples = (count: number) => {
  const samples: Parameters<NonNullable<CmafOptions['editVideo']>>[0][] = []
  return recordCmaf({
    editVideo: (sample, index) => {
      samples.push(sample)
      if (index !== KEY_SAMPLE + count - 1) return sample
      const joined = samples.slice(KEY_SAMPLE)
      return {
        ...sample,
        chunks: joined.flatMap(({ chunks }) => chunks),
        sizeBytes: joined.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      }
    },
  })
}

/** Each rule with exchanges that break it, and others that come close and keep all. */
const CASES: Readonly<Record<string, readonly [broken: Exchange[], kept: Exchange[]]>> = {
  RENDITIONS_START_APART: [delayAudio(good, 0.25), delayAudio(good, 0.2)],
  MAP_CHANGED: [
    changeMap(segmentsOnly, ''),
    editVideo(segmentsOnly, '#EXTINF', '#EXT-X-MAP:URI="e-v1.mp4"\n#EXTINF'),
  ],
  IN_BAND_ENTRY: [renameCodec(renameEntry(withSets([1]), 'avc3'), 'avc3'), good],
  CODECS_SAMPLE_ENTRY: [renameCodec(good, 'avc3'), good],
  PARAMETER_SETS_IN_BAND: [withSets([1]), withSets([1], Buffer.from('0000000409f00000', 'hex'))],
  PARAMETER_SETS_MISSING: [renameSet(good), good],
  SAMPLE_FRAMES: [joinSamples(2), joinSamples(1)],
  PART_DURATION_INEXACT: [duration('0.19998'), duration('0.20003')],
  EXTINF_INEXACT: [extinf('1.00300'), extinf('1.00150')],
  DECODE_TIME_BREAK: [delayFrom(good, 2), delayFrom(good, 1)],
  PART_BYTES_DIFFER: [
    edit(good, 'segment', SEGMENT, (bytes) => Buffer.concat([makeBox('free'), bytes])),
    edit(partsOnly, 'part', KEY_PART, (bytes) => Buffer.concat([makeBox('free'), bytes])),
  ],
  TIMESTAMPS_BREAK: [
    editMediaBytes(segmentsOnly, ({ playlist, index, bytes }) =>
      index < SEGMENT ? bytes : delay(bytes, playlist === VIDEO ? 270_000 : 144_000),
    ),
    delayFrom(segmentsOnly, 1),
  ],
  MAP_MISSING: [
    editMedia(good, (text) =>
      text.replace(/#EXT-X-MAP.*\n/, '').replace('VERSION:6', 'VERSION:3'),
    ).filter(({ role }) => role !== 'init'),
    good,
  ],
  BOXES_BROKEN: [
    edit(partsOnly, 'part', KEY_PART + 1, shiftSamples),
    edit(partsOnly, 'part', KEY_PART + 1, (bytes) => Buffer.concat([makeBox('emsg'), bytes])),
  ],
  PART_LENGTH: [edit(partsOnly, 'part', LAST_PART, shortenSamples), partsOnly],
  PARTS_DIFFER: [edit(oneSegment, 'segment', 0, (bytes) => delay(bytes, 4500)), oneSegment],
  PART_NOT_INDEPENDENT: [moveKey(-1), moveKey(KEY_SAMPLE)],
  PART_KEY_FRAME_LATE: [moveKey(KEY_SAMPLE + 1), moveKey(KEY_SAMPLE)],
  PART_NOT_MARKED: [
    editVideo(partsOnly, 'p35.m4s",INDEPENDENT=YES', 'p35.m4s"'),
    editVideo(partsOnly, 'p41.m4s"', 'p41.m4s",INDEPENDENT=NO'),
  ],
}

t.test('finds nothing in a session of our own', async (t) => keepsAll(t, good))

for (const [id, [broken, kept]] of Object.entries(CASES)) {
  t.test(`finds in CMAF: ${id}`, async (t) => {
    const { evidence } = breaks(t, id, broken)
    for (const facts of evidence) for (const { text } of facts) t.ok(text.length > 0)
    keepsAll(t, kept)
  })
}

t.test('a new init segment at a DISCONTINUITY breaks no rule', async (t) => {
  keepsAll(t, changeMap(segmentsOnly, '#EXT-X-DISCONTINUITY\n'))
})

t.test('a segment that lacks its last part breaks PARTS_DIFFER alone of both rules', async (t) => {
  const cut = edit(good, 'segment', SEGMENT, (bytes) =>
    bytes.subarray(0, bytes.lastIndexOf('moof') - 4),
  )
  const ids = new Set(judge(cut).map(({ rule }) => rule.id))
  t.ok(ids.has('PARTS_DIFFER'))
  t.notOk(ids.has('PART_BYTES_DIFFER'))
})

t.test('renditions of two timelines are not compared by their numbers', async (t) => {
  const late = delayAudio(good, 0.25)
  const tag = '#EXT-X-DISCONTINUITY\n'
  const moved = editVideo(late, '#EXT-X-MAP', `${tag}#EXT-X-MAP`)
  t.notOk(judge(moved).some(({ rule }) => rule.id === 'RENDITIONS_START_APART'))
})

t.test('dates that are none, or beyond all dates, are no marks to compare', async (t) => {
  const apart = delayAudio(good, 5)
  t.ok(judge(apart).some(({ rule }) => rule.id === 'RENDITIONS_APART'))
  for (const edited of [
    editMedia(apart, (text) => text.replaceAll('DATE-TIME:20', 'DATE-TIME:x')),
    editMedia(apart, (text) => text.replace('EXTINF:1.0', 'EXTINF:99999999999999.0')),
  ]) {
    t.ok(judge(edited).length > 0)
  }
})

t.test('init segments are byte ranges of one file as well', async (t) => {
  const [video, audio] = good.filter(({ role }) => role === 'init').map(({ reply }) => reply!.body)
  const ranges = [`${video!.length}@0`, `${audio!.length}@${video!.length}`]
  let index = 0
  const inOne = good.map((exchange): Exchange => {
    if (exchange.role === 'playlist') {
      const range = ranges[exchange.url.includes(VIDEO) ? 0 : 1]
      const map = `#EXT-X-MAP:URI="e.mp4",BYTERANGE="${range}"`
      return withBody(exchange, (text) => text.replace(/#EXT-X-MAP.*/, map))
    }
    if (exchange.role !== 'init') return exchange
    const [length, first] = ranges[index++]!.split('@').map(Number) as [number, number]
    const url = new URL('e.mp4', exchange.url).href
    const headers = { range: `bytes=${first}-${first + length - 1}` }
    return { ...exchange, url, headers, reply: { ...exchange.reply!, url, status: 206 } }
  })
  keepsAll(t, inOne)
  t.ok(judge(delayFrom(inOne, 2)).some(({ rule }) => rule.id === 'DECODE_TIME_BREAK'))
})

t.test('the parts of the session are no longer than PART-TARGET', async (t) => {
  const durations = good[1]!.reply!.body.toString().matchAll(/DURATION=([\d.]+),URI/g)
  const longest = Math.max(...[...durations].map(([, sec]) => Number(sec)))
  t.ok(longest > 0.85 * PART_TARGET_SEC && longest <= PART_TARGET_SEC)
})
