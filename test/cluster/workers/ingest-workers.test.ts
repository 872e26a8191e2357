/**
 * INGEST_WORKERS with real processes: streams of all of them at one address, and the death of one.
 */
import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { connect, parseSrtUrl } from '../../../src/srt/index.ts'
import { canReusePort } from '../../../src/srt/io/socket.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { until } from '../../support/until.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'
import {
  groupOf,
  publishStream,
  serveWithWorkers,
  spawnService,
  type WorkersService,
} from './workers-service.ts'

const METRICS_TOKEN = 'm'.repeat(32)
const ENV = { INGEST_WORKERS: '2', HTTP_WORKERS: '0', METRICS_TOKEN }

const skip = !canReusePort(process.versions.node) && 'Node.js does not know reusePort'

/** Process that has claimed the stream last. */
function ownerOf(service: WorkersService, streamId: string): unknown {
  const isClaim = (line: Record<string, unknown>) =>
    line['msg'] === 'stream claimed' && line['stream_id'] === streamId
  return service.lines().findLast(isClaim)?.['process']
}

/** Publishes streams until both processes have one. */
async function publishToBoth(t: Test, service: WorkersService) {
  const streams = new Map<string, { readonly events: readonly unknown[] }>()
  const owners = () => new Map([...streams.keys()].map((id) => [ownerOf(service, id), id]))
  while (owners().size < 2) {
    const id = `studio-${streams.size}`
    streams.set(id, await publishStream(t, service, id))
  }
  return { streams, ids: [...streams.keys()], owners }
}

/** Number after the last segment of a playlist. */
function nextNumber(playlist = ''): number {
  const first = Number(/^#EXT-X-MEDIA-SEQUENCE:(\d+)$/m.exec(playlist)?.[1])
  return first + (playlist.match(/#EXTINF/g)?.length ?? 0)
}

t.test('several processes are one service', { skip }, async (t) => {
  const webhooks = await startWebhookReceiver(t)
  const service = await serveWithWorkers(t, { ...ENV, DEFAULT_WEBHOOK_URLS: webhooks.url })
  t.equal(service.pids('ingest-process').length, 2)
  t.equal(service.pids('worker-process').length, 1)
  t.match(
    service.lines().filter(({ msg }) => msg === 'listening'),
    [{ http: service.url, srt_port: service.srtPort, process: 'ingest-1' }],
  )
  const { streams, ids, owners } = await publishToBoth(t, service)
  const statusOf = async (stream_id: string) =>
    (await service.api('status', { stream_id })).body.data as { status: string; viewers: number }

  await t.test('each process answers for the streams of all', async (t) => {
    for (const id of ids) {
      t.match(await statusOf(id), { status: 'STREAMING' })
      await until('a viewer', async () => {
        await service.readPlaylist(id)
        return (await statusOf(id)).viewers === 1
      })
    }
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    const metrics = await (await fetch(`${service.url}/metrics`, { headers })).text()
    const counts = [
      ...metrics.matchAll(/^millrace_streams\{process="(.*)",state="STREAMING"\} (.*)$/gm),
    ]
    t.strictSame(new Set(counts.map(([, name]) => name)), new Set(['ingest-1', 'ingest-2']))
    t.equal(
      counts.reduce((sum, [, , count]) => sum + Number(count), 0),
      ids.length,
    )
  })

  await t.test('backup encoders and readers come to the process of their stream', async (t) => {
    for (let tries = 0; tries < 4; tries++) {
      const id = `pair-${tries}`
      const request = { stream_id: id, backup: true, play: true }
      const { data } = (await service.api('start-stream', request)).body
      const urls = [data['srt_url'], data['backup_srt_url']] as string[]
      const encoders = urls.map((url) => publishDemo(t, url))
      const sources = async () =>
        (await service.api('status', { stream_id: id })).body.data['sources'] as object[]
      await until('both encoders', async () => (await sources()).length === 2)
      const reader = await connect(parseSrtUrl(data['play_url'] as string))
      await reader.close()
      for (const encoder of encoders) encoder.stop()
      await service.api('stop-stream', { stream_id: id })
    }
    t.strictSame(
      service.lines().filter(({ msg }) => /rejected/.test(String(msg))),
      [],
    )
  })

  await t.test('when one is killed, another one goes on with its streams', async (t) => {
    const [kept, lost] = ['ingest-1', 'ingest-2'].map((name) => owners().get(name)!) as [
      string,
      string,
    ]
    const before = nextNumber(await service.readPlaylist(lost))
    const [first, second] = service.pids('ingest-process')
    process.kill(second!, 'SIGKILL')
    await until('the next owner', () => ownerOf(service, lost) === 'ingest-1')
    await until('another process', () => service.pids('ingest-process').length === 2)
    t.equal(service.pids('ingest-process')[0], first)
    await until('its encoder', async () => (await statusOf(lost)).status === 'STREAMING')
    const next = await until('its playlist', async () => {
      const number = nextNumber(await service.readPlaylist(lost))
      return number > before + 1 && number
    })
    t.ok(next < before + 100, 'the playlist goes on without a gap in its numbers')
    t.ok(streams.get(lost)!.events.length >= 2, 'its encoder has reconnected')
    t.equal(streams.get(kept)!.events.length, 1, 'that of another process stays')
  })

  await t.test('SIGTERM ends all streams', async (t) => {
    service.program.kill('SIGTERM')
    for (const id of ids) {
      await until(`ENDLIST of ${id}`, async () =>
        (await service.readPlaylist(id))?.includes('ENDLIST'),
      )
    }
    t.equal(await service.program.exit, 0)
    const ends = webhooks.received.filter(({ event }) => event.type === 'stream.stopped')
    const ended = ends.map(({ event }) => event.stream_id)
    t.strictSame(ended.filter((id) => id.startsWith('studio')).toSorted(), ids.toSorted())
    t.strictSame(groupOf(service.program.child.pid!), [])
    t.strictSame(readdirSync(service.folder), [])
  })
})

t.test('a Node.js without reusePort is refused', { skip: !skip }, async (t) => {
  const { program } = spawnService(t, { ...ENV, HTTP_PORT: '8080', SRT_PORT: '10080' })
  t.equal(await program.exit, 2)
  t.match(program.output(), /^millrace: INGEST_WORKERS is 2 and this is Node\.js .*22\.12/)
})
