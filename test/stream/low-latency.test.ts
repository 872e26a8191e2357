/**
 * Parts of a live stream, from payloads to playlists: what players decode, and what a lost encoder leaves behind.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Part } from '../../src/hls/store/part.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Publication } from '../../src/stream/publication.ts'
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

const playlist = (stream: LiveStream) => stream.files.get('playlist.m3u8')!.chunks.join('')

const hintOf = (stream: LiveStream) =>
  /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="([^"]*)"/.exec(playlist(stream))?.[1]

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
  const whole = transmux(withParts)
  const inParts = transmux(withParts.flatMap(({ parts }) => parts.map(toFile)))
  t.same(inParts, whole)
  t.equal(
    whole.videoFrames,
    withParts.reduce((sum, it) => sum + it.videoFrames, 0),
  )
  for (const { parts, bytes } of withParts) {
    t.ok(Buffer.concat(parts.flatMap(({ chunks }) => chunks)).equals(bytes))
  }
})

t.test('an INDEPENDENT part alone starts with a key frame and has audio and video', async (t) => {
  const { stream, segments, connect, push } = setUp()
  push(connect(), 0, CLIP.length)
  stream.stop('api')
  const parts = segments.flatMap((segment) => segment.parts)
  const independent = parts.filter((part) => part.independent)
  t.ok(independent.length >= 5, `${independent.length} of ${parts.length}`)
  for (const part of independent) {
    const alone = transmux([toFile(part)])
    t.equal(alone.independent, true, part.uri)
    t.ok(alone.videoFrames > 0 && alone.audioFrames > 0, part.uri)
    t.same(alone.complaints, [], part.uri)
  }
  t.ok(segments.every(({ parts: [first] }) => first === undefined || first.independent))
})

t.test('the hinted part is served after each of 50 lost encoders', async (t) => {
  const { stream, connect, push } = setUp()
  const random = createRandom(50)
  push(connect(), 0, CLIP.length)
  let published = 0
  for (let lost = 0; lost < 50; lost++) {
    const publication = connect()
    push(publication, 0, (CLIP.length >> 1) + random.below(CLIP.length >> 2))
    const hinted = hintOf(stream)!
    t.equal(stream.files.availability(hinted), 'future')
    publication.end('timeout')
    t.match(
      playlist(stream),
      /\n#EXT-X-DISCONTINUITY\n#EXT-X-PRELOAD-HINT:[^\n]*\n$/,
      'the discontinuity precedes the next hint in the same update (hls.js#7962)',
    )
    if (stream.files.availability(hinted) === 'current') published++
    else t.equal(hintOf(stream), hinted, 'or it is still hinted')
    const next = connect()
    push(next, 0, CLIP.length >> 2)
    t.equal(stream.files.availability(hinted), 'current')
    t.ok(stream.files.get(hinted)!.chunks.length > 0)
    next.end('timeout')
  }
  t.ok(published > 25, `${published} were published by the end of their encoder`)
  stream.stop('api')
  t.equal(hintOf(stream), undefined)
})

t.test('PART-INF and SERVER-CONTROL never change', async (t) => {
  const { stream, connect, push } = setUp()
  const seen = new Set<string>()
  for (let encoder = 0; encoder < 4; encoder++) {
    const publication = connect()
    for (let at = 0; at < CLIP.length; at += CLIP.length >> 5) {
      push(publication, at, Math.min(at + (CLIP.length >> 5), CLIP.length))
      const text = stream.files.get('playlist.m3u8')?.chunks.join('') ?? ''
      for (const line of text.match(/#EXT-X-(PART-INF|SERVER-CONTROL|TARGETDURATION).*/g) ?? []) {
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
  t.match(playlist(stream), /EXT-X-PART-INF/)
  t.notMatch(playlist(classic.stream), /PART|SERVER-CONTROL|RENDITION-REPORT|PRELOAD/)
})
