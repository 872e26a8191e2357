/**
 * The notices of the player page, and its playback, in a browser.
 */
import { execFile } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { StreamFile } from '../../../src/playback/playback-source.ts'
import { createStreamFile } from '../../../src/hls/store/stream-file.ts'
import { MemoryService, MemoryStream, startApp } from '../../http/memory-service.ts'
import { until } from '../../support/until.ts'
import { openPage } from '../support/browser.ts'
import { requireTool } from '../support/tools.ts'

t.test('the page waits, plays and reports the state in a browser', async (t) => {
  if (!requireTool(t, 'chromium', 'ffmpeg')) return
  const service = new MemoryService()
  const app = await startApp(t, service)
  const { page, errors } = await openPage(t, `${app.url}/watch/demo`)
  const refused: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) refused.push(message.text())
  })
  const says = (words: string) => page.waitForSelector(`#notice:has-text("${words}")`)

  await says('No stream of this name')
  const stream = new MemoryStream()
  service.streams.set('demo', stream)
  await says('The stream has not started')
  stream.status = 'STREAMING'
  await says('The stream is about to play')

  const media = await makeMedia(t.testdir())
  for (const [name, file] of media) stream.files.set(name, file)
  stream.files.set('playlist.m3u8', firstSegmentOnly(media.get('playlist.m3u8')!))
  stream.live = true
  const isLoaded = 'document.querySelector("video").buffered.length > 0'
  await until('the first segment is loaded', () => page.evaluate<boolean>(isLoaded))
  t.ok(await page.evaluate('document.querySelector("video").paused'), 'one segment is too thin ice')
  await says('Loading the picture')
  t.notOk(await page.isVisible('#unmute'), 'nothing to hear yet')

  stream.files.set('playlist.m3u8', media.get('playlist.m3u8')!)
  const plays = 'document.querySelector("video").currentTime > 1'
  await until('the video plays', () => page.evaluate<boolean>(plays))
  t.ok(await page.isVisible('#badge'))
  t.notOk(await page.isVisible('#notice'))
  t.equal(await page.evaluate('document.querySelector("video").videoWidth'), 320)
  t.notOk(await page.isVisible('label'), 'nothing to choose from')
  await page.waitForSelector('#buffer:has-text(" s")')

  t.ok(await page.evaluate('document.querySelector("video").muted'), 'plays by itself, so muted')
  await page.click('#unmute')
  t.notOk(await page.evaluate('document.querySelector("video").muted'))
  await page.waitForSelector('#unmute', { state: 'hidden' })

  Object.assign(stream, { status: 'INTERRUPTED', live: false })
  await says('The stream is interrupted')
  t.notOk(await page.isVisible('#badge'))
  stream.status = 'STOPPED'
  await says('The stream has ended')
  service.streams.delete('demo')
  const forgets = () =>
    page.waitForResponse((reply) => reply.url().endsWith('/state') && reply.status() === 404)
  await forgets()
  await forgets()
  await says('The stream has ended')

  // The same id anew: the page that is still open plays it.
  const again = Object.assign(new MemoryStream(), { status: 'STREAMING', live: true })
  for (const [name, file] of media) again.files.set(name, file)
  service.streams.set('demo', again)
  await until('the new video plays', () => page.evaluate<boolean>(plays))
  t.strictSame(errors, [])
  t.strictSame(refused, [], 'the content security policy refuses nothing')
})

/** 8 s of video and audio, cut by ffmpeg, in a playlist without ENDLIST. */
async function makeMedia(folder: string): Promise<Map<string, StreamFile>> {
  const sources = ['testsrc2=size=320x180:rate=25', 'sine=sample_rate=48000']
  await promisify(execFile)('ffmpeg', [
    ...['-v', 'error', ...sources.flatMap((source) => ['-f', 'lavfi', '-i', source]), '-t', '8'],
    ...[
      '-c:v',
      'libx264',
      '-preset',
      'ultrafast',
      '-pix_fmt',
      'yuv420p',
      '-g',
      '25',
      '-c:a',
      'aac',
    ],
    ...['-f', 'hls', '-hls_time', '1', '-hls_list_size', '0', join(folder, 'playlist.m3u8')],
  ])
  const media = readdirSync(folder).map((name): [string, StreamFile] => {
    const bytes = readFileSync(join(folder, name))
    if (name.endsWith('.ts'))
      return [
        name,
        createStreamFile('segment', { chunks: [bytes], version: name, targetDurationSec: 1 }),
      ]
    const endless = bytes.toString().replace(/#EXT-X-ENDLIST\s*/, '')
    return [
      name,
      createStreamFile('media-playlist', {
        chunks: [Buffer.from(endless)],
        version: name,
        targetDurationSec: 1,
      }),
    ]
  })
  const master = Buffer.from('#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2000000\nplaylist.m3u8\n')
  const file = createStreamFile('multivariant-playlist', {
    chunks: [master],
    version: 'm',
    targetDurationSec: 1,
  })
  return new Map([...media, ['master.m3u8', file]])
}

/** The playlist when it had one segment. */
function firstSegmentOnly(playlist: StreamFile): StreamFile {
  const text = playlist.chunks.join('')
  const end = text.indexOf('.ts\n') + '.ts\n'.length
  return { ...playlist, chunks: [Buffer.from(text.slice(0, end))], version: 'first' }
}
