import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Handover, UncheckedOptions } from '../../../../src/cluster/registry/registered.ts'
import { Registry } from '../../../../src/cluster/registry/registry.ts'
import { initUri, segmentUri, type RenditionName } from '../../../../src/hls/file-names.ts'
import type { CheckpointHead, CheckpointRow } from '../../../../src/hls/playlist/checkpoint.ts'
import {
  encodeHead,
  encodeCheckpoint,
  checkpointOf,
} from '../../../../src/cluster/node/registered/registered-checkpoint.ts'

/** A section of SCTE-35 may have 4 KiB. */
const SECTION = Buffer.alloc(4096).toString('base64')

const head = (dateRanges: CheckpointHead['dateRanges']): CheckpointHead => ({
  media: { segmentSec: 2, playlistSegments: 6 },
  free: { media: 13, discontinuity: 4 },
  listedFrom: 7,
  renditions: [{ name: 'main', listed: true }],
  dateRanges,
})

const idsOf = (dateRanges: CheckpointHead['dateRanges']) => {
  const { renditions } = encodeHead(head(dateRanges))
  return (renditions as CheckpointHead).dateRanges.map(({ id }) => id)
}

t.test('of long date ranges, the registry gets the newest', async (t) => {
  const long = Array.from({ length: 64 }, (_, index) => {
    return { id: `splice-${index}`, startMs: index, scte35Out: SECTION, scte35In: SECTION }
  })
  t.strictSame(idsOf(long), ['splice-63'])
})

t.test('usual ones are all written', async (t) => {
  const usual = Array.from({ length: 64 }, (_, index) => {
    const scte35Out = Buffer.alloc(40).toString('base64')
    return { id: `splice-${index}`, startMs: 1e12 + index, durationSec: 30, scte35Out }
  })
  t.equal(idsOf(usual).length, 64)
})

t.test('the registry takes a row of all renditions of both formats, and its head', async (t) => {
  const sequence = 4_294_967_295
  const of = (kind: string, count: number, from: number) =>
    Array.from({ length: count }, (_, index) => `${kind}-${index + from}` as RenditionName)
  const names: RenditionName[] = [
    ...['main' as const, ...of('video', 7, 2), ...of('audio', 15, 2)],
    ...[...of('cmaf-video', 8, 1), ...of('cmaf-audio', 16, 1)],
  ]
  const epoch = '0'.repeat(12)
  const segments = names.map((rendition) => ({
    ...{ rendition, uri: segmentUri(epoch, rendition, sequence), sizeBytes: 100_000_000 },
    ...{ independent: false, gap: false, videoRange: 'SDR' as const, durationSec: 10.12345 },
    map: initUri(epoch, 'cmaf-audio-16', '0'.repeat(12)),
  }))
  const row: CheckpointRow = {
    ...{ mediaSequence: sequence, discontinuitySequence: sequence, discontinuity: false },
    ...{ programDateTimeMs: 1.8e12, durationSec: 10.12345, segments },
  }
  const track = {
    ...{ pid: 8191, streamType: 255, kind: 'video' as const, codec: 'h264' as const },
    ...{ descriptors: 'A'.repeat(60), label: 'x'.repeat(64), language: 'eng' },
    parameters: { codecString: 'hvc1.2.4.L153.B0', width: 3840, height: 2160, frameRate: 59.94006 },
  }
  const figures = { peakBps: 123_456_789.123, sizeBytes: 1e12, durationSec: 123_456.789_012_3 }
  const renditions = names.map((name) => ({
    ...{ name, listed: true },
    measured: { tracks: [track, track], ...figures, videoFrames: 1e9, videoSec: 1e6 },
  }))
  const command = async () => ['OK', '1', '1']
  const sequenceClock = { originMs: 0, mediaPerSec: 4, discontinuitiesPerSec: 1 }
  const registry = new Registry({ redis: { command }, sequenceClock })
  const ownership = { node: 'a', fence: 1 }
  const { first: _, ...whole } = encodeCheckpoint({ ...head([]), renditions, rows: [row] })
  const written = await registry.advance('studio', ownership, { ...whole, serial: 1, first: 1 })
  t.equal(written.outcome, 'accepted')
})

const SETTINGS = {
  ...{ formats: ['ts'] as const, segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
  ...{ lowLatency: true, partMs: 200 },
}

/** Stream with these options, as a node claims it. */
const registered = (options: UncheckedOptions) => ({
  ...{ id: 'studio', run: 1, fence: 1, epoch: 'e', isYielded: false, status: 'READY' as const },
  ...{ startedAtMs: 0, keyExpiresAtMs: 0, options, keys: {} },
})

t.test(
  'a stream that was never published begins with the media that it was started with',
  async (t) => {
    const mediaOf = (media: object) => {
      const handover = { free: { media: 1, discontinuity: 1 }, entries: [] }
      return checkpointOf({ ...handover, stream: registered({ media }) }, SETTINGS).media
    }
    t.strictSame(mediaOf({}), { formats: ['ts'], segmentSec: 2, playlistSegments: 6 })
    t.strictSame(mediaOf({ formats: ['cmaf'], partMs: 300 }), {
      ...{ formats: ['cmaf'], segmentSec: 2, playlistSegments: 6, partSec: 0.3 },
    })
  },
)

// The file is never changed: a node of any later version continues the streams of one that has written this.
t.test('a stream of an earlier version goes on with all of its segments', async (t) => {
  const text = readFileSync(new URL('golden-checkpoint.json', import.meta.url), 'utf8')
  const golden = JSON.parse(text) as Omit<Handover, 'stream'> & { renditions: CheckpointHead }
  const { free, targets, renditions, entries } = golden
  const { media, ...checkpoint } = checkpointOf({ ...golden, stream: registered({}) }, SETTINGS)
  t.match(media, renditions.media)
  const { media: _, ...head } = renditions
  t.strictSame(checkpoint, { ...head, free, targets, rows: entries.map(({ value }) => value) })
})

t.test(
  'a media option that is newer than its checkpoint has its value from the start',
  async (t) => {
    const { playlistSegments: _, ...media } = head([]).media
    const renditions = { ...head([]), media }
    const handover = { free: { media: 13, discontinuity: 4 }, renditions, entries: [] }
    const stream = registered({ media: { playlistSegments: 9 } })
    t.match(checkpointOf({ ...handover, stream }, SETTINGS), {
      ...{ listedFrom: 7, media: { ...media, playlistSegments: 9 } },
    })
  },
)
