/**
 * Parts of a live stream, from payloads to playlists: what players decode, and what a lost encoder leaves behind.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { playlistUri, type RenditionName } from '../../src/hls/file-names.ts'
import type { Part, Segment } from '../../src/hls/store/segment.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Publication } from '../../src/stream/publication.ts'
import { readSamples } from '../mp4/box-tree.ts'
import { createRandom } from '../support/random.ts'
import { transmux } from '../support/transmuxer.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

/** H.264 with a key frame each second and AAC, 8 s. */
const CLIP = readFileSync(new URL('../../fixtures/demo.mpegts', import.meta.url))
const PAYLOAD_BYTES = 1316

function setUp({ parts = true } = {}) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 }
  const stream = new LiveStream('studio', {
    clock,
    cache: new SegmentCache({ maxBytes: 256 * 1024 * 1024 }),
    epoch: 'e',
    formats: ['ts', 'cmaf'],
    partSec: parts ? 0.2 : undefined,
    segmentSec: 1,
    maxSegmentSec: 10,
    playlistSegments: 6,
    lingerSec: 60,
    reconnectGraceSec: 120,
  })
  const segments: Segment[] = []
  stream.on('segment', (segment) => segments.push(segment))
  const connect = () =>
    stream.publish({ lastPacketUs: 0, report: () => PUBLISHER_REPORT, close: () => undefined })
  /** Pushes payloads of the clip from `from` to `to`, in bytes. */
  const push = (publication: Publication, from: number, to: number) => {
    for (let at = from; at < to; at += PAYLOAD_BYTES) {
      nowUs += (8e6 * PAYLOAD_BYTES) / CLIP.length
      publication.push(CLIP.subarray(at, Math.min(at + PAYLOAD_BYTES, to)))
    }
  }
  return { stream, segments, connect, push }
}

const playlist = (stream: LiveStream, name: RenditionName = 'cmaf-video-1') =>
  stream.files.get(playlistUri(name))?.chunks.join('') ?? ''

const hintOf = (stream: LiveStream) =>
  /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="([^"]*)"/.exec(playlist(stream))?.[1]

const LOW_LATENCY = /PART|SERVER-CONTROL|RENDITION-REPORT|PRELOAD/

const toFile = (part: Part) => ({
  bytes: Buffer.concat(part.chunks),
  durationSec: part.durationSec,
  discontinuity: false,
})

t.test('parts in sequence have all frames and bytes of their segments', async (t) => {
  const { stream, segments, connect, push } = setUp()
  push(connect(), 0, CLIP.length)
  stream.stop('api')
  const withParts = segments.filter(({ parts }) => parts.length > 0)
  t.ok(withParts.length >= 5, `${withParts.length} segments`)
  const framesOf = (bytes: Buffer) => readSamples(bytes).map((sample) => sample.bytes)
  for (const { parts, bytes, videoFrames, rendition, mediaSequence } of withParts) {
    t.ok(Buffer.concat(parts.flatMap(({ chunks }) => chunks)).equals(bytes))
    t.same(
      parts.flatMap(({ chunks }) => framesOf(Buffer.concat(chunks))),
      framesOf(bytes),
    )
    if (rendition !== 'cmaf-video-1') continue
    t.equal(framesOf(bytes).length, videoFrames)
    const isSame = (it: Segment) => it.rendition === 'main' && it.mediaSequence === mediaSequence
    t.equal(segments.find(isSame)?.videoFrames, videoFrames, 'those of transport stream')
  }
})

t.test('an INDEPENDENT part alone can be played', async (t) => {
  const { stream, segments, connect, push } = setUp()
  push(connect(), 0, CLIP.length)
  stream.stop('api')
  const parts = segments.flatMap((segment) => segment.parts)
  for (const name of ['cmaf-video-1', 'cmaf-audio-1']) {
    const own = parts.filter(({ rendition }) => rendition === name)
    const independent = own.filter((part) => part.independent)
    t.ok(independent.length >= 5, `${independent.length} of ${own.length}`)
    for (const part of independent) {
      const alone = transmux([toFile(part)], part.map?.bytes)
      const isVideo = name === 'cmaf-video-1'
      t.equal(alone.independent, isVideo ? true : undefined, part.uri)
      t.ok((isVideo ? alone.videoFrames : alone.audioFrames) > 0, part.uri)
      t.same(alone.complaints, [], part.uri)
    }
  }
  t.ok(segments.every(({ parts: [first] }) => first === undefined || first.independent))
})

t.test(
  'the hinted part is served as soon as its encoder is lost, and none is hinted until the next',
  async (t) => {
    const { stream, connect, push } = setUp()
    const random = createRandom(50)
    push(connect(), 0, CLIP.length)
    for (let lost = 0; lost < 50; lost++) {
      const publication = connect()
      push(publication, 0, (CLIP.length >> 1) + random.below(CLIP.length >> 2))
      const hinted = hintOf(stream)!
      t.equal(stream.files.availability(hinted), 'future')
      publication.end('timeout')
      t.match(
        playlist(stream),
        /\.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-RENDITION-REPORT:[^\n]*\n$/,
        'the discontinuity alone',
      )
      t.equal(stream.files.availability(hinted), 'current')
      t.ok(stream.files.get(hinted)!.chunks.length > 0)
      push(connect(), 0, CLIP.length >> 2)
    }
    stream.stop('api')
    t.equal(hintOf(stream), undefined)
  },
)

t.test('another encoder that replaces one leaves no version without an open part', async (t) => {
  const { stream, connect, push } = setUp()
  push(connect(), 0, CLIP.length)
  for (let encoder = 0; encoder < 5; encoder++) {
    const publication = connect()
    let hasDiscontinuity = false
    for (let at = 0; at < CLIP.length >> 1; at += PAYLOAD_BYTES) {
      push(publication, at, at + PAYLOAD_BYTES)
      const text = playlist(stream)
      t.match(text, /\n#EXT-X-PRELOAD-HINT/)
      const [, after] = text.split('#EXT-X-DISCONTINUITY\n')
      if (after === undefined || hasDiscontinuity) continue
      hasDiscontinuity = true
      t.equal(after.match(/#EXT-X-PART:/g)?.length, 2, 'two parts follow at once')
    }
    t.ok(hasDiscontinuity)
    // So that one discontinuity is listed at a time.
    push(publication, 0, CLIP.length)
  }
})

t.test('PART-INF and SERVER-CONTROL never change', async (t) => {
  const { stream, connect, push } = setUp()
  const seen = new Set<string>()
  for (let encoder = 0; encoder < 4; encoder++) {
    const publication = connect()
    for (let at = 0; at < CLIP.length; at += CLIP.length >> 5) {
      push(publication, at, Math.min(at + (CLIP.length >> 5), CLIP.length))
      for (const line of playlist(stream).match(
        /#EXT-X-(PART-INF|SERVER-CONTROL|TARGETDURATION).*/g,
      ) ?? []) {
        seen.add(line)
      }
    }
    publication.end('timeout')
  }
  t.equal(seen.size, 3, [...seen].join('\n'))
})

t.test('a stream without parts has no tag of low latency', async (t) => {
  const { stream, connect, push } = setUp()
  const classic = setUp({ parts: false })
  push(connect(), 0, CLIP.length)
  classic.push(classic.connect(), 0, CLIP.length)
  for (const name of ['cmaf-video-1', 'cmaf-audio-1'] as const) {
    t.match(playlist(stream, name), /EXT-X-PART-INF/)
    t.match(playlist(classic.stream, name), /#EXTINF/)
    t.notMatch(playlist(classic.stream, name), LOW_LATENCY)
  }
  t.match(playlist(stream, 'main'), /#EXTINF/)
  t.notMatch(playlist(stream, 'main'), LOW_LATENCY, 'nor has transport stream')
})
