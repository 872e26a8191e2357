/**
 * Rewind over real SRT and HTTP: what has left the memory comes back from a store that somebody else wrote.
 */
import t, { type Test } from 'tap'
import { checkStream } from '../../src/check/index.ts'
import { signPlaybackToken } from '../../src/index.ts'
import { startEdge } from '../cluster/edge/edge-app.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { archiveOptionsOf, startS3Server } from '../support/s3-server.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { segmentUris } from '../support/viewer.ts'

const SECRET = 'p'.repeat(32)

/** Starts a stream whose first segments are in the store alone. */
async function startStream(t: Test, { isPublic }: { readonly isPublic: boolean }) {
  const requests = { count: 0, isRefused: false }
  const store = await startS3Server(t, {
    refuses: () => {
      requests.count++
      return requests.isRefused
    },
  })
  const service = await startService(t, {
    archive: { ...archiveOptionsOf(store), ...(!isPublic && { publicUrl: '' }) },
    playbackSecret: SECRET,
    hls: { segmentSec: 1, playlistSegments: 3, dvrSec: 3600, formats: 'cmaf' },
  })
  const { srtUrl } = await service.server.startStream({ streamId: 'studio' })
  const stream = service.server.findStream('studio')!
  const live = new Map<string, Buffer>()
  stream.on('segment', ({ uri, bytes }) => live.set(uri, Buffer.from(bytes)))
  publishDemo(t, srtUrl)
  const expiresAt = new Date(Date.now() + 600_000)
  const token = signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt })
  const path = `/t/${token}/video/studio/`
  const [first, second, third] = await until('the first segments have left the memory', () => {
    const uris = [...live.keys()].filter((uri) => uri.includes('-v1-'))
    return uris.length > 3 && stream.files.get(uris[2]!) === undefined && uris
  })
  const read = (name: string, init?: RequestInit) => fetch(service.url + path + name, init)
  return { ...service, requests, live, path, read, uris: [first!, second!, third!] as const }
}

t.test('media that has left the memory is read back, once for all viewers', async (t) => {
  const { url, path, read, live, requests, uris } = await startStream(t, { isPublic: false })
  const text = await (await read('dvr-cmaf-video-1.m3u8')).text()
  t.same(segmentUris(text).slice(0, 3), uris)
  const before = requests.count
  const all = await Promise.all(Array.from({ length: 9 }, () => read(uris[0])))
  for (const response of all) {
    t.ok(Buffer.from(await response.arrayBuffer()).equals(live.get(uris[0])!), 'byte for byte')
    t.match(response.headers.get('cache-control'), /^public, max-age=\d+, immutable$/)
    t.equal(response.headers.get('content-type'), 'video/mp4')
  }
  const range = await read(uris[0], { headers: { range: 'bytes=4-7' } })
  t.equal(await range.text(), live.get(uris[0])!.toString('latin1', 4, 8))
  // What is stored meanwhile are requests, too.
  t.ok(requests.count - before < 9, `${requests.count - before} requests`)

  t.equal((await fetch(`${url}/video/studio/${uris[0]}`)).status, 403, 'tokens hold')
  t.equal((await read('abc-v1-1.m4s')).status, 404)
  requests.isRefused = true
  const refused = await read(uris[1])
  t.equal(refused.status, 503)
  t.match(await refused.json(), { code: 'ARCHIVE_UNAVAILABLE' })
  t.equal((await read('master.m3u8')).status, 200)
  requests.isRefused = false

  const edge = await startEdge(t, url, { playbackSecret: SECRET })
  const master = await (await fetch(`${edge.url}${path}dvr.m3u8`)).text()
  t.match(master, /\ndvr-cmaf-video-1\.m3u8\n/)
  const passed = await (await fetch(`${edge.url}${path}dvr-cmaf-video-1.m3u8`)).text()
  t.same(segmentUris(passed).slice(0, 3), uris)
  const media = await fetch(edge.url + path + uris[2])
  t.ok(Buffer.from(await media.arrayBuffer()).equals(live.get(uris[2])!), 'at an edge')
  const delta = await until('a delta update', async () => {
    const reply = await (
      await fetch(`${edge.url}${path}dvr-cmaf-video-1.m3u8?_HLS_skip=YES`)
    ).text()
    return reply.includes('#EXT-X-SKIP') && reply
  })
  t.match(delta, /#EXT-X-SKIP:SKIPPED-SEGMENTS=\d+\n/)

  const { findings } = await checkStream({ url: `${url}${path}dvr.m3u8`, seconds: 8 })
  t.strictSame(findings, [], 'the checker finds nothing')
})

t.test('viewers are sent to the store where they reach it', async (t) => {
  const { url, path, read, live, uris } = await startStream(t, { isPublic: true })
  const redirected = await read(uris[0], { redirect: 'manual' })
  t.equal(redirected.status, 302)
  t.match(redirected.headers.get('location'), /^http:.*\/archive\/live\/studio\/.*\.m4s$/)
  t.equal(redirected.headers.get('access-control-allow-origin'), '*')
  const edge = await startEdge(t, url, { playbackSecret: SECRET })
  for (const base of [url, edge.url]) {
    const response = await fetch(base + path + uris[1])
    t.ok(response.redirected)
    t.ok(Buffer.from(await response.arrayBuffer()).equals(live.get(uris[1])!), 'byte for byte')
  }
})

t.test('dvr_sec is for archived streams', async (t) => {
  const plain = await startService(t)
  const refused = await plain.tryApi('start-stream', { stream_id: 'studio', dvr_sec: 60 })
  t.equal(refused.status, 400)
  t.equal(
    refused.body.error,
    'dvr_sec must be 0 or absent: ARCHIVE_URL is not set, or ARCHIVE is off',
  )
  const { endpoint, url, credentials } = await startS3Server(t)
  const service = await startService(t, { archive: { ...credentials, endpoint, url } })
  const start = (body: object) => service.tryApi('start-stream', { stream_id: 'studio', ...body })
  t.equal((await start({ dvr_sec: 60, archive: false })).status, 400)
  t.equal((await start({ dvr_sec: 60 })).status, 200)
  t.match(service.server.status('studio').options, { dvrSec: 60 })
})
