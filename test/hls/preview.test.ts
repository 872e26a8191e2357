/**
 * The newest key frame of a stream as `preview.ts`, made from segments of real encoders.
 */
import { createRequire } from 'node:module'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Packager } from '../../src/hls/packager.ts'
import { LivePresentation } from '../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { FileStore } from '../../src/hls/store/file-store.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { call, json, MemoryService, startApp } from '../http/memory-service.ts'
import { demux, readFixture } from '../mpegts/demux.ts'
import { openBrowser } from '../peers/support/browser.ts'
import { decodeErrors, readDecoded } from '../peers/support/media.ts'
import { requireFile, requireTool } from '../peers/support/tools.ts'

/** Packages a clip; `onSegment` is called after each segment. */
function publish(source: Buffer, onSegment?: (files: FileStore, segment: Segment) => void) {
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments: 3 })
  const packager = new Packager({
    epoch: 'e',
    segmentSec: 2,
    maxSegmentSec: 10,
    slabs: cache.slabs,
  })
  const segments: Segment[] = []
  const take = (outputs: ReturnType<Packager['end']>) => {
    for (const output of outputs) {
      if (output.type === 'target') presentation.setTarget(output.targetSec)
      if (output.type !== 'segment') continue
      segments.push(output.segment)
      presentation.append(output.segment, segments.length * 2000)
      onSegment?.(presentation.files, output.segment)
    }
  }
  for (const output of demux(source)) take(packager.push(output, 1e12))
  take(packager.end())
  return { files: presentation.files, segments, cache, presentation }
}

async function write(t: Test, name: string, chunks: readonly Buffer[]): Promise<string> {
  const file = join(t.testdirName, `${name}.mpegts`)
  await writeFile(file, Buffer.concat(chunks))
  return file
}

for (const name of ['h264-aac', 'h265-aac', 'h264-open-gop', 'h264-bounded-pes', 'two-programs']) {
  t.test(`the preview of ${name} is the first frame of the newest segment with one`, async (t) => {
    if (!requireTool(t, 'ffmpeg')) return
    t.testdir()
    const { files, segments } = publish(readFixture(name))
    const { uri, chunks } = segments.findLast(({ startsWithKeyFrame }) => startsWithKeyFrame)!
    const preview = files.get('preview.ts')!
    t.match(preview, { contentType: 'video/mp2t', version: `${uri}-preview`, maxAgeSec: 1 })
    const file = await write(t, 'preview', preview.chunks)
    const [frames, whole] = await Promise.all([
      readDecoded(file),
      readDecoded(await write(t, 'segment', chunks)),
    ])
    t.same(frames.audio, [])
    t.equal(frames.video.length, 1)
    t.ok(whole.video.includes(frames.video[0]!), 'a frame of the segment')
    if (!name.includes('open-gop')) t.equal(frames.video[0], whole.video[0], 'the first one')
    t.equal(await decodeErrors(file), '')
  })
}

t.test('a stream of audio alone has no preview', async (t) => {
  const { files, segments } = publish(readFixture('mp3'))
  t.ok(segments.length > 0)
  t.equal(files.get('preview.ts'), undefined)
  t.equal(files.availability('preview.ts'), 'unknown')
})

t.test('a preview is made once a segment, in its memory, and goes with it', async (t) => {
  const seen = new Set<unknown>()
  const { files, segments, cache, presentation } = publish(
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
  const { files } = publish(readFixture('h264-aac'))
  service.stored.set('studio', { status: 'STREAMING', live: true, files })
  service.stored.set('radio', {
    status: 'STREAMING',
    live: true,
    files: publish(readFixture('mp3')).files,
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

t.test('hls.js draws the preview from a playlist in a blob', { timeout: 30_000 }, async (t) => {
  if (!requireFile(t, '/usr/bin/chromium')) return
  const service = new MemoryService()
  service.stored.set('studio', {
    status: 'STREAMING',
    live: true,
    files: publish(readFixture('h264-aac')).files,
  })
  const { url } = await startApp(t, service)
  const page = await (await openBrowser(t)).newPage()
  const script = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js')
  await page.addScriptTag({ content: await readFile(script, 'utf8') })
  const drawn = await page.evaluate(`new Promise((resolve, reject) => {
    const playlist = '#EXTM3U\\n#EXT-X-TARGETDURATION:1\\n#EXTINF:1,\\n${url}/video/studio/preview.ts\\n#EXT-X-ENDLIST\\n'
    const video = document.createElement('video')
    const hls = new Hls()
    hls.on(Hls.Events.ERROR, (_, { details, error }) => reject(new Error(details + ' ' + error)))
    // PTS exceeds DTS where B-frames follow: the frame begins after 0.
    hls.on(Hls.Events.FRAG_BUFFERED, () => (video.currentTime = video.buffered.start(0)))
    video.addEventListener('loadeddata', () => {
      const { videoWidth: width, videoHeight: height } = video
      const canvas = Object.assign(document.createElement('canvas'), { width, height })
      const context = canvas.getContext('2d')
      context.drawImage(video, 0, 0)
      const { data } = context.getImageData(0, 0, width, height)
      resolve({ width, height, colors: new Set(new Uint32Array(data.buffer)).size })
    })
    hls.loadSource(URL.createObjectURL(new Blob([playlist], { type: 'application/vnd.apple.mpegurl' })))
    hls.attachMedia(video)
  })`)
  t.match(drawn, { width: 160, height: 90 })
  t.ok((drawn as { colors: number }).colors > 100, 'the canvas has the colors of the frame')
})
