/**
 * Delta updates over HTTP (RFC 8216bis 6.2.5.1, 6.3.7): a client that merges each of them has the playlist of the
 * service, while encoders come and go. The clock is as fast as the machine.
 */
import t from 'tap'
import { parseMediaPlaylist } from '../../src/check/playlist/media-playlist.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { LoopedClip } from '../support/looped-clip.ts'
import { mergeDelta } from '../support/merge-delta.ts'
import { createRandom } from '../support/random.ts'
import { rounds } from '../support/soak.ts'
import { MemoryService, startApp } from '../http/memory-service.ts'

/** Duration of the stream, in minutes of media. */
const MINUTES = rounds(1, 30)

/** Age of a second playlist that each delta update is merged into, in versions. */
const EARLIER = 12

function startStream() {
  let nowUs = 0
  const stream = new LiveStream('studio', {
    clock: { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: 256 * 1024 * 1024 }),
    epoch: 'e',
    partSec: 0.2,
    formats: ['ts', 'cmaf'],
    segmentSec: 1,
    maxSegmentSec: 10,
    playlistSegments: 20,
    lingerSec: 60,
    reconnectGraceSec: 120,
  })
  const pass = (sec: number) => {
    nowUs += sec * 1e6
  }
  const connect = () => {
    const publication = stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
    const clip = new LoopedClip()
    const push = () => {
      const { bytes, durationSec } = clip.next()
      pass(durationSec)
      publication.push(bytes)
    }
    return { push, disconnect: () => publication.end('timeout') }
  }
  return { stream, connect, pass, mediaSec: () => nowUs / 1e6 }
}

const parse = (text: string) => parseMediaPlaylist(text, 'cmaf-video-1.m3u8')

/** Directives of the next part of a playlist. */
function nextPart(text: string): { mediaSequence: number; part: number } {
  const { sequence, uri, parts } = parse(text).segments.at(-1)!
  return uri === undefined
    ? { mediaSequence: sequence, part: parts.length }
    : { mediaSequence: sequence + 1, part: 0 }
}

t.test(`each delta update of ${MINUTES} minutes merges into the full playlist`, async (t) => {
  const { stream, connect, pass, mediaSec } = startStream()
  const service = new MemoryService()
  service.stored.set('studio', stream)
  const { url } = await startApp(t, service)
  const read = async (query: string) => {
    const reply = await fetch(`${url}/video/studio/cmaf-video-1.m3u8${query}`)
    if (reply.status !== 200) throw new Error(`${query} is answered with ${reply.status}`)
    return reply.text()
  }
  const random = createRandom(10)
  let encoder = connect()
  while (!stream.live) encoder.push()
  const versions = [await read('')]
  const seen = { deltas: 0, full: 0, skipped: 0, earlier: 0, reconnects: 0 }
  // Below the window of 20 s, and above.
  let untilReconnectSec = 45
  let reconnectedSec = 0
  while (mediaSec() < MINUTES * 60) {
    const next = nextPart(versions.at(-1)!)
    const reply = read(`?_HLS_msn=${next.mediaSequence}&_HLS_part=${next.part}&_HLS_skip=YES`)
    if (mediaSec() - reconnectedSec > untilReconnectSec) {
      for (let payloads = random.below(20); payloads > 0; payloads--) encoder.push()
      encoder.disconnect()
      pass(random.below(5))
      encoder = connect()
      seen.reconnects++
      reconnectedSec = mediaSec()
      untilReconnectSec = 10 + random.below(100)
    }
    while (stream.files.availability('cmaf-video-1.m3u8', next) !== 'current') encoder.push()
    const delta = await reply
    const full = await read('')
    for (const known of [versions.at(-1)!, versions[0]!]) {
      if (mergeDelta(known, delta) === full) continue
      t.equal(mergeDelta(known, delta), full, `at ${mediaSec()} s`)
      return
    }
    const { skipped } = parse(delta)
    seen.skipped += skipped
    if (skipped > 0) seen.deltas++
    else seen.full++
    if (skipped > 0 && versions.length > EARLIER) seen.earlier++
    versions.push(full)
    if (versions.length > EARLIER + 1) versions.shift()
  }
  stream.stop('api')
  t.comment(JSON.stringify(seen))
  t.ok(seen.reconnects >= MINUTES / 2, `${seen.reconnects} reconnects`)
  t.ok(seen.deltas > 120 * MINUTES, `${seen.deltas} delta updates`)
  t.ok(seen.full > 0, `${seen.full} full playlists, while a discontinuity is listed`)
  t.ok(seen.skipped > 10 * seen.deltas, `${seen.skipped} skipped segments`)
})
