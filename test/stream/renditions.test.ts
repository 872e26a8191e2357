/**
 * Two languages through a stream, as viewers of each rendition see them.
 */
import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

const SECONDS = 12
const PAYLOAD_BYTES = 1316

type Uri = 'playlist.m3u8' | 'audio-2.m3u8'
const URIS: readonly Uri[] = ['playlist.m3u8', 'audio-2.m3u8']

t.test(
  'two languages through reconnects: the URLs stay, and all playlists keep step',
  async (t) => {
    const clip = await readFile(new URL('../../fixtures/h264-two-audio.mpegts', import.meta.url))
    const stream = publish(t, clip, { times: 12 })
    t.match(stream.report().totals, { publishers: 12, segments: 24 })
    t.match(stream.files.get('audio-2.m3u8')!.chunks.join(''), /e-a2-11\.ts\n$/)
    stream.stop('api')
    t.match(stream.files.get('audio-2.m3u8')!.chunks.join(''), /ENDLIST\n$/)
  },
)

/** Publishes a clip in SRT payloads, and checks every version of every playlist. */
function publish(t: Test, clip: Buffer, { times }: { readonly times: number }) {
  let nowUs = 0
  const stream = new LiveStream('studio', {
    clock: { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 3 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  stream.on('live', () => t.ok(stream.files.get('master.m3u8'), 'live: everything can be played'))
  const judge = new StreamJudge()
  const versions = new Map<Uri, string>()
  const dates = new Map<number, string>()
  const look = () => {
    const multivariant = stream.files.get('master.m3u8')?.chunks.join('')
    t.same(multivariant === undefined ? [] : judge.multivariant(multivariant), [])
    for (const uri of URIS) {
      const file = stream.files.get(uri)
      if (file === undefined || file.version === versions.get(uri)) continue
      versions.set(uri, file.version)
      const text = file.chunks.join('')
      const { manifest, complaints } = parseM3u8(text)
      const broken = [...judge.playlist(uri, text), ...complaints]
      if (broken.length > 0) t.fail(`${uri}: ${broken.join()}`)
      let discontinuities = manifest.discontinuitySequence!
      for (const [index, segment] of manifest.segments!.entries()) {
        if (segment.discontinuity === true) discontinuities++
        if (stream.files.get(segment.uri) === undefined) t.fail(`${segment.uri} is listed and gone`)
        // Rules 13 and 62: a number means the same time in all of them.
        const number = manifest.mediaSequence! + index
        const date = `${discontinuities} ${segment.programDateTime} ${segment.duration} ${manifest.targetDuration}`
        if (date !== (dates.get(number) ?? date)) t.fail(`${segment.uri}: ${date}`)
        dates.set(number, date)
      }
    }
  }
  for (let time = 0; time < times; time++) {
    const encoder = { lastPacketUs: 0, report: () => PUBLISHER_REPORT, close: () => {} }
    const publication = stream.publish(encoder)
    for (let at = 0; at < clip.length; at += PAYLOAD_BYTES) {
      nowUs += (SECONDS * 1e6 * PAYLOAD_BYTES) / clip.length
      publication.push(clip.subarray(at, at + PAYLOAD_BYTES))
      look()
    }
    publication.end('shutdown')
    look()
  }
  t.ok(dates.size > 0)
  return stream
}
