/**
 * A publisher whose SCTE-35 sections become date ranges: what they add to the playlists of all renditions is limited.
 */
import t from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { COSTLY_STREAMS, payloadsOf } from './attacks/costly-streams.ts'

const CLEAN = 'no splices, 16 renditions'
const STREAMS = Object.keys(COSTLY_STREAMS).filter((name) => name.includes('16 renditions'))
const READ = ['playlist.m3u8', 'audio-2.m3u8', 'audio-16.m3u8']
/** 32 KiB of date ranges, and the segments. */
const MAX_PLAYLIST_BYTES = 34 * 1024
const SECONDS = 8
const STEP_US = (1316 * 8) / 1.2

/** Publishes 1.2 Mbit/s. @returns warnings, and versions of playlists, one a second */
function publish(name: string) {
  let nowUs = 0
  const stream = new LiveStream('splices', {
    clock: { nowUs: () => nowUs, wallMs: () => 1e12 + nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: 64e6 }),
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  const encoder = { lastPacketUs: 0, report: () => PUBLISHER_REPORT, close: () => undefined }
  const publication = stream.publish(encoder)
  const payloads = payloadsOf(COSTLY_STREAMS[name]!())
  const versions: Buffer[] = []
  for (; nowUs < SECONDS * 1e6; nowUs += STEP_US) {
    publication.push(payloads.next().value)
    if (nowUs % 1e6 >= STEP_US) continue
    const files = READ.flatMap((uri) => stream.files.get(uri) ?? [])
    versions.push(...files.map(({ chunks }) => Buffer.concat(chunks)))
  }
  const warnings = stream.report().warnings.map(({ code }) => code)
  stream.discard()
  return { versions, warnings }
}

t.test('splices of any kind add 32 KiB to a playlist at most, with a warning', async (t) => {
  for (const name of STREAMS) {
    const { versions, warnings } = publish(name)
    const sizes = versions.map(({ length }) => length)
    t.ok(sizes.length >= READ.length, name)
    t.ok(Math.max(...sizes) < MAX_PLAYLIST_BYTES, `${name}: ${Math.max(...sizes)} bytes`)
    t.equal(warnings.includes('TOO_MANY_SPLICES'), name !== CLEAN, name)
  }
})
