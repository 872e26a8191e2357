/**
 * Twenty encoders of 5 Mbit/s, archived to a store that does not answer for five minutes. Prints what that costs.
 */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { callApi } from '../support/service.ts'
import { start } from '../support/process.ts'
import { rounds } from '../support/soak.ts'
import { until } from '../support/until.ts'
import { requireTool } from '../peers/support/tools.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const PUBLISHERS = rounds(4, 20)
const AWAY_SEC = rounds(40, 300)
const MAX_MIB = rounds(16, 256)
/** Time before the absence, in which the cache fills, and behind it. */
const [BEFORE_SEC, BEHIND_SEC] = [40, 20]
/** Growth of the process beside what waits: of the heap, and of memory that malloc does not give back. */
const MAX_OTHER_MIB = 64
/** Garbage would count as memory. */
const COLLECT = ['--expose-gc', '--import=data:text/javascript,setInterval(gc, 5000).unref()']

type Test = Parameters<typeof start>[0]

interface StoredObject {
  readonly etag: string
  readonly sizeBytes: number
  /** Undefined for media. */
  readonly text: Buffer | undefined
}

/** Keeps playlists and indexes, and of media the ETags. */
async function startStore(t: Test) {
  const objects = new Map<string, StoredObject>()
  const store = { objects, isAway: false, endpoint: '' }
  const server = createServer((request, response) => {
    const hash = createHash('md5')
    const pieces: Buffer[] = []
    let sizeBytes = 0
    const [path = ''] = request.url!.split('?')
    const isText = /\.(m3u8|json)$/.test(path)
    request.on('data', (piece: Buffer) => {
      hash.update(piece)
      sizeBytes += piece.length
      if (isText) pieces.push(piece)
    })
    request.on('end', () => {
      if (store.isAway) return
      const stored = objects.get(path)
      if (request.method === 'PUT') {
        const { 'if-match': match, 'if-none-match': noMatch } = request.headers
        const isWanted =
          noMatch === '*' ? stored === undefined : (match ?? stored?.etag) === stored?.etag
        response.statusCode = isWanted ? 200 : 412
        if (isWanted) {
          const etag = `"${hash.digest('hex')}"`
          objects.set(path, { etag, sizeBytes, text: isText ? Buffer.concat(pieces) : undefined })
          response.setHeader('ETag', etag)
        }
        response.end()
        return
      }
      response.statusCode = stored === undefined ? 404 : 200
      if (stored !== undefined)
        response.setHeader('ETag', stored.etag).setHeader('Content-Length', stored.sizeBytes)
      response.end(request.method === 'HEAD' ? undefined : stored?.text)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close().closeAllConnections())
  store.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return store
}

/** Segments of a media playlist. */
function segmentsOf(playlist: string): { name: string; isGap: boolean }[] {
  return [...playlist.matchAll(/((?:^#.*\n)*)^([^#\n].*)\n/gm)].map(([, tags, name]) => ({
    name: name!,
    isGap: tags!.includes('#EXT-X-GAP\n'),
  }))
}

t.test('live goes on while the store is away, and gaps are exactly what it lacks', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const clip = join(t.testdir(), 'clip.mpegts')
  const source = '-f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=sample_rate=48000'
  const codec =
    '-t 20 -c:v libx264 -preset ultrafast -g 60 -b:v 4750k -minrate 4750k -maxrate 4750k -bufsize 4750k -pix_fmt yuv420p -c:a aac -b:a 128k'
  execFileSync('ffmpeg', `-v error ${source} ${codec} -f mpegts ${clip}`.split(' '))
  const store = await startStore(t)
  const newSecret = () => randomBytes(32).toString('hex')
  const [hmacSecret, jwtSecret, metricsToken] = [newSecret(), newSecret(), newSecret()]
  const env = {
    HMAC_SECRET: hmacSecret,
    METRICS_TOKEN: metricsToken,
    JWT_SECRET: jwtSecret,
    ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: '0', SRT_HOST: '127.0.0.1', SRT_PORT: '0' },
    ...{ ARCHIVE_URL: 's3://soak/live', ARCHIVE_ENDPOINT: store.endpoint },
    ...{ AWS_ACCESS_KEY_ID: 'soak', AWS_SECRET_ACCESS_KEY: 'soak-soak-soak-soak' },
    ARCHIVE_MAX_MIB: String(MAX_MIB),
  }
  const service = start(t, process.execPath, [...COLLECT, CLI, 'serve'], { env })
  const [, url] = await until('the service listens', () =>
    /"http":"([^"]+)"/.exec(service.output()),
  )
  const call = async (name: 'start-stream' | 'stop-stream' | 'status', id: string) =>
    (await callApi(url!, name, { stream_id: id }, hmacSecret)).body.data
  const ids = Array.from({ length: PUBLISHERS }, (_, index) => `studio-${index}`)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  for (const id of ids) {
    const { srt_url: srtUrl } = await call('start-stream', id)
    // Time to send again what a busy machine has not read from its socket.
    const target = `${srtUrl}&latency=2000`
    publish({ file: clip, url: target, loop: true, signal: stop.signal }).catch(() => {})
  }
  const report = async (when: string) => {
    const headers = { authorization: `Bearer ${metricsToken}` }
    const text = await (await fetch(`${url}/metrics`, { headers })).text()
    const read = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1])
    const rssMiB = Math.round(read('process_resident_memory_bytes') / 1024 / 1024)
    const waitingMiB = Math.round(read('millrace_archive_waiting_bytes') / 1024 / 1024)
    t.comment(`${when}: RSS ${rssMiB} MiB, ${waitingMiB} MiB wait for the store`)
    t.ok(waitingMiB <= MAX_MIB)
    return rssMiB
  }
  await sleep(BEFORE_SEC * 1000)
  const beforeMiB = await report('before')
  store.isAway = true
  for (let sec = 0; sec < AWAY_SEC; sec += AWAY_SEC / 5) {
    await sleep((AWAY_SEC / 5) * 1000)
    const growthMiB = (await report('away')) - beforeMiB
    t.ok(growthMiB <= MAX_MIB + MAX_OTHER_MIB, `the process has grown by ${growthMiB} MiB`)
  }
  store.isAway = false
  await sleep(BEHIND_SEC * 1000)
  await report('back')
  for (const id of ids) {
    const { live, publisher } = await call('status', id)
    t.match({ live, dropped: publisher['packets_dropped'] }, { live: true, dropped: 0 }, id)
  }
  stop.abort()
  for (const id of ids) await call('stop-stream', id)
  for (const id of ids)
    await until(`the archive of ${id} is complete`, async () => {
      return (await call('status', id))['archive']['state'] === 'COMPLETE'
    })
  const all: ReturnType<typeof segmentsOf> = []
  for (const [path, { text }] of store.objects) {
    if (text === undefined || !path.endsWith('.m3u8') || path.endsWith('/master.m3u8')) continue
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    const segments = segmentsOf(text.toString())
    t.match(text.toString(), /#EXT-X-ENDLIST\n$/)
    const wrong = segments.filter(({ name, isGap }) => store.objects.has(folder + name) === isGap)
    t.strictSame(wrong, [], path)
    all.push(...segments)
  }
  const lost = all.filter(({ isGap }) => isGap).length
  t.comment(`${all.length} segments are listed, ${lost} are lost`)
  t.ok(lost > 0, 'more than memory holds')
})
