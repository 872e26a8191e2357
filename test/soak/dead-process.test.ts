/**
 * One of INGEST_WORKERS dies with 20 streams, before hls.js, Shaka and Video.js as published. Prints how long the video stood
 * still in each player.
 */
import t from 'tap'
import { canReusePort } from '../../src/srt/io/socket.ts'
import { publishStream, serveWithWorkers } from '../cluster/workers/workers-service.ts'
import { openBrowser } from '../peers/support/browser.ts'
import { FRAMES_PER_SEC, startEncoder } from '../peers/support/live-encoder.ts'
import { requireTool } from '../peers/support/tools.ts'
import { hasGivenUp } from '../peers/support/video-js-player.ts'
import { rounds } from '../support/soak.ts'
import { until } from '../support/until.ts'
import { openScreens, readShown } from './screens.ts'

const STREAMS = rounds(4, 20)
const KILLS = rounds(1, 5)
const WATCHED = 'watched'

const skip = !canReusePort(process.versions.node) && 'Node.js does not know reusePort'

t.test('players go on where a process has died', { skip }, async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const service = await serveWithWorkers(t, { INGEST_WORKERS: '2', HTTP_WORKERS: '1' })
  const ids = Array.from({ length: STREAMS }, (_, index) => `studio-${index}`)
  const publishers = new Map(
    await Promise.all(ids.map(async (id) => [id, await publishStream(t, service, id)] as const)),
  )
  const started = (await service.api('start-stream', { stream_id: WATCHED })).body.data
  startEncoder(t, started['srt_url'], '320x180', { isFine: true, retries: true })
  const masterUrl: string = started['master_url']
  await until('the watched stream is live', async () => (await fetch(masterUrl)).ok)
  const screens = await openScreens(await openBrowser(t), masterUrl)

  const claims = () => service.lines().filter(({ msg }) => msg === 'stream claimed')
  const ownerOf = (id: string) => claims().findLast((line) => line['stream_id'] === id)?.['process']
  const droppedOf = async (id: string): Promise<number> =>
    (await service.api('status', { stream_id: id })).body.data['publisher']['packets_dropped']
  const pids = new Map(
    service.pids('ingest-process').map((pid, index) => [`ingest-${index + 1}` as unknown, pid]),
  )

  for (let kill = 1; kill <= KILLS; kill++) {
    for (const { page } of screens) await readShown(page, 'anew')
    const dying = ownerOf(WATCHED)
    const others = ids.filter((id) => ownerOf(id) !== dying)
    const before = new Map(others.map((id) => [id, publishers.get(id)!.events.length]))
    const claimed = claims().length
    process.kill(pids.get(dying)!, 'SIGKILL')
    await until('another owner', () => ownerOf(WATCHED) !== dying)
    await until('another process', () => service.pids('ingest-process').length === 2)
    pids.set(dying, service.pids('ingest-process').at(-1)!)
    const stills: string[] = []
    for (const { name, page, errorsOf } of screens) {
      let { frames } = await readShown(page)
      const playsOn = async () => {
        if (hasGivenUp(await errorsOf(page))) {
          t.comment(`${name} is loaded anew`)
          await page.reload()
          frames = 0
        }
        return (await readShown(page)).frames > frames + 15 * FRAMES_PER_SEC
      }
      await until(`${name} plays on`, playsOn, { timeoutMs: 120_000 })
      stills.push(`${name} ${Math.round((await readShown(page)).stillMs)} ms`)
    }
    const moved = claims().length - claimed
    t.comment(`${String(dying)} killed, ${moved} claims: still ${stills.join(', ')}`)
    for (const id of others) {
      t.equal(publishers.get(id)!.events.length, before.get(id), `${id} stays connected`)
      t.equal(await droppedOf(id), 0, `${id} loses nothing`)
    }
    for (const id of ids) {
      await until(`${id} is back`, async () => {
        const { body } = await service.tryApi('status', { stream_id: id })
        return body.data?.['status'] === 'STREAMING'
      })
    }
  }
  // Shaka tells of each 503 (1001) and EXT-X-GAP (1011), and tries again or passes over it.
  const isPassedOver = (error: string) => error === '1011' || /^1001 \S+ 503 /.test(error)
  for (const { name, page, errorsOf } of screens) {
    const errors = (await errorsOf(page)).filter((error) => !isPassedOver(error))
    t.strictSame(errors, [], `${name} has no error`)
  }
})
