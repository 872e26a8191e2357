/**
 * Twenty encoders at once into one process, then SIGTERM while they send.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { checkPlaylists } from '../support/check-playlists.ts'
import { start } from '../support/process.ts'
import { callApi } from '../support/service.ts'
import { requireTool } from '../peers/support/tools.ts'
import { until } from '../support/until.ts'
import { record } from '../support/viewer.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const PUBLISHERS = 20
const SECONDS = 60

t.test(
  '20 publishers of 2 Mbit/s have valid playlists, no dropped packet and a clean end',
  {
    timeout: (SECONDS + 240) * 1000,
  },
  async (t) => {
    if (!requireTool(t, 'ffmpeg')) return
    const clip = join(t.testdir(), 'clip.mpegts')
    const source =
      '-f lavfi -i testsrc2=size=640x360:rate=30 -f lavfi -i sine=sample_rate=48000 -t 20'
    const codec =
      '-c:v libx264 -preset ultrafast -g 60 -b:v 1850k -minrate 1850k -maxrate 1850k -bufsize 1850k -pix_fmt yuv420p -c:a aac -b:a 64k'
    execFileSync('ffmpeg', `-v error ${source} ${codec} -f mpegts ${clip}`.split(' '))

    const env = {
      HMAC_SECRET: randomBytes(32).toString('hex'),
      JWT_SECRET: randomBytes(32).toString('hex'),
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      SRT_HOST: '127.0.0.1',
      SRT_PORT: '0',
    }
    const service = start(t, process.execPath, [CLI, 'serve'], { env })
    const [, url] = await until('the service listens', () =>
      /"http":"([^"]+)"/.exec(service.output()),
    )
    const call = async (name: 'start-stream' | 'status', streamId: string) =>
      (await callApi(url!, name, { stream_id: streamId }, env.HMAC_SECRET)).body.data

    const ids = Array.from({ length: PUBLISHERS }, (_, index) => `studio-${index}`)
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const viewers = []
    const encoders = []
    for (const id of ids) {
      const started = await call('start-stream', id)
      viewers.push(record(started['playlist_url'], stop.signal))
      // Time to send again what a busy machine has not read from its socket.
      const url = `${started['srt_url']}&latency=2000`
      encoders.push(publish({ file: clip, url, loop: true, signal: stop.signal }))
    }
    const encodersDone = Promise.allSettled(encoders)
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000))

    for (const id of ids) {
      const { status, live, publisher, warnings } = await call('status', id)
      t.match(
        {
          status,
          live,
          dropped: publisher['packets_dropped'],
          warnings,
        },
        { status: 'STREAMING', live: true, dropped: 0, warnings: [] },
        id,
      )
    }
    service.kill('SIGTERM')
    const toldAt = performance.now()
    t.equal(await service.exit, 0, 'ends cleanly')
    t.comment(`gone ${Math.round(performance.now() - toldAt)} ms after SIGTERM`)
    stop.abort()
    await encodersDone
    for (const viewer of viewers) {
      const { playlists, segments, failures } = await viewer.catch((error: unknown) => {
        throw new Error('the viewer met no ENDLIST before the service was gone', { cause: error })
      })
      t.strictSame(failures, [])
      t.strictSame(checkPlaylists(playlists), [])
      t.match(playlists.at(-1), /#EXT-X-ENDLIST\n$/)
      t.ok(segments.size >= Math.floor(SECONDS / 2) - 2, `${segments.size} segments`)
    }
    t.notMatch(service.output(), /unhandled|Error:/i)
  },
)
