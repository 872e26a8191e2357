/**
 * The newest key frame of a stream as `preview.ts`, made from its segments.
 */
import t from 'tap'
import { call, json, MemoryService, startApp } from '../http/memory-service.ts'
import { packageClip } from './packaged-clip.ts'
import { readFixture } from '../mpegts/demux.ts'

t.test('a stream of audio alone has no preview', async (t) => {
  const { files, segments } = packageClip(readFixture('mp3'))
  t.ok(segments.length > 0)
  t.equal(files.get('preview.ts'), undefined)
  t.equal(files.availability('preview.ts'), 'unknown')
})

t.test('a preview is made once a segment, in its memory, and goes with it', async (t) => {
  const seen = new Set<unknown>()
  const { files, segments, cache, presentation } = packageClip(
    readFixture('h264-aac'),
    (files, { uri }) => {
      const [first, second] = [files.lend('preview.ts')!, files.lend('preview.ts')!]
      t.equal(first.file, second.file)
      t.equal(first.file.version, `${uri}-preview`)
      seen.add(first.file)
      first.end?.()
      second.end?.()
    },
  )
  t.equal(seen.size, segments.length)
  const { file, end } = files.lend('preview.ts')!
  const memory = new Set(segments.at(-1)!.chunks.map(({ buffer }) => buffer))
  t.ok(
    file.chunks.slice(1).every(({ buffer }) => memory.has(buffer)),
    'views into the segment',
  )

  const freeBytes = () => cache.slabs.freeBytes
  presentation.discard()
  t.equal(files.lend('preview.ts'), undefined)
  const before = freeBytes()
  end?.()
  t.ok(freeBytes() > before, 'the memory is free after the loan')
})

t.test('GET, HEAD and If-None-Match of /video/{stream_id}/preview.ts', async (t) => {
  const service = new MemoryService()
  const { files } = packageClip(readFixture('h264-aac'))
  service.stored.set('studio', { status: 'STREAMING', live: true, files })
  service.stored.set('radio', {
    status: 'STREAMING',
    live: true,
    files: packageClip(readFixture('mp3')).files,
  })
  const app = await startApp(t, service)
  const file = files.get('preview.ts')!
  const headers = {
    'content-type': 'video/mp2t',
    'cache-control': 'public, max-age=1',
    etag: `"${file.version}"`,
    'access-control-allow-origin': '*',
  }

  const gzip = { headers: { 'accept-encoding': 'gzip' } }
  const get = await call(app, 'GET', '/video/studio/preview.ts', gzip)
  t.match(get, { status: 200, headers })
  t.notOk(get.headers['content-encoding'], 'video is not compressed')
  t.notOk(get.headers['vary'])
  t.ok(get.body.equals(Buffer.concat(file.chunks)))
  const head = await call(app, 'HEAD', '/video/studio/preview.ts')
  t.match(head, { status: 200, headers: { ...headers, 'content-length': `${get.body.length}` } })
  const known = { headers: { 'if-none-match': headers.etag } }
  t.equal((await call(app, 'GET', '/video/studio/preview.ts', known)).status, 304)

  const radio = await call(app, 'GET', '/video/radio/preview.ts')
  t.match(radio, { status: 404, headers: { 'access-control-allow-origin': '*' } })
  t.match(json(radio), { success: false, code: 'FILE_NOT_FOUND', error: /has no video/ })
  const unknown = await call(app, 'GET', '/video/unknown/preview.ts')
  t.match(json(unknown), { code: 'STREAM_NOT_FOUND' })
})
