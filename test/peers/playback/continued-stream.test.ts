/**
 * Viewers over HTTP of a stream whose process is killed and that another process continues under the same URL.
 */
import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { parseCheckpoint, type StreamCheckpoint } from '../../../src/hls/playlist/checkpoint.ts'
import { applyChange } from '../../support/checkpoint-record.ts'
import { startFaultProxy, type ProxyReply, type ProxyRequest } from '../../check/fault-proxy.ts'
import { watchPlaylist } from '../support/hls-js-viewer.ts'
import { createClipStream, publishClip, startLiveClip } from '../support/live-clip.ts'
import { start } from '../../support/process.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { MemoryService, startApp } from '../../http/memory-service.ts'

const AWAY_MS = 1500
const SETTINGS = { segmentSec: 1, playlistSegments: 6 }

t.test('players go on when the process is killed', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const { stream: first, stall } = startLiveClip(t, { ...SETTINGS, startSec: 10 })
  let recorded: StreamCheckpoint = first.checkpoint
  first.on('checkpoint', (change) => {
    recorded = applyChange(recorded, JSON.parse(JSON.stringify(change)) as typeof change)
  })
  const media = new Map<string, Buffer>()
  for (const { segments } of recorded.rows) {
    for (const { uri, map, gap } of segments) {
      const names = gap ? [] : [uri, ...(map === undefined ? [] : [map])]
      for (const name of names) media.set(name, Buffer.concat(first.files.get(name)!.chunks))
    }
  }
  first.on('segment', ({ uri, bytes, map }) => {
    media.set(uri, Buffer.from(bytes))
    if (map !== undefined) media.set(map.uri, map.bytes)
  })
  const owner = await startApp(t, withStream(first))
  const nextService = new MemoryService()
  const next = await startApp(t, nextService)

  // As an edge does: a request that waits at the owner when it dies is sent to the next one.
  const killed = new EventEmitter()
  killed.setMaxListeners(0)
  let isKilled = false
  const statuses: string[] = []
  const url = await startFaultProxy(t, next.url, async (request, toNext) => {
    const move = async () => {
      await once(killed, 'now')
      return toNext(request)
    }
    const reply = await (isKilled
      ? toNext(request)
      : Promise.race([fetchFrom(owner.url, request), move()]))
    if (reply.status !== 200) statuses.push(`${reply.status} ${request.url}`)
    return reply
  })
  const base = `${url}/video/studio`
  const { versions } = watchPlaylist(t, `${base}/cmaf-video-1.m3u8`)
  const progress = ['-progress', 'pipe:1', '-c', 'copy', '-f', 'null', '-']
  const readers = ['playlist.m3u8', 'cmaf-video-1.m3u8'].map((playlist) => {
    const input = ['-v', 'fatal', '-re', '-i', `${base}/${playlist}`, '-t', '9']
    return { playlist, ffmpeg: start(t, 'ffmpeg', [...input, ...progress]) }
  })
  await until('hls.js follows', () => versions.length > 10)

  stall()
  first.removeAllListeners()
  const checkpoint = parseCheckpoint(recorded)!
  const { free } = checkpoint
  const continued = { checkpoint, mediaOf: (uri: string) => listOf(media.get(uri)) }
  const second = createClipStream({ ...SETTINGS, epoch: 'next', continued })
  // The window moves on while ffmpeg reads.
  const listed = new Set<string>()
  second.on('segment', () => {
    for (const { playlist } of readers) {
      const lines = second.files.get(playlist)!.chunks.join('').split('\n')
      for (const line of lines) listed.add(line)
    }
  })
  t.teardown(() => second.stop('api'))
  nextService.stored.set('studio', second)
  isKilled = true
  killed.emit('now')
  const before = versions.length
  await sleep(AWAY_MS)
  publishClip(t, second, 0)

  const serials = () => versions.slice(before).map(({ serial }) => serial)
  await until('hls.js follows the next process', () => serials().filter((it) => it > 10).length > 5)
  for (const { playlist, ffmpeg } of readers) {
    t.equal(await ffmpeg.exit, 0)
    const [, frames] = [...ffmpeg.output().matchAll(/^frame=\s*(\d+)$/gm)].at(-1) ?? []
    t.ok(Number(frames) > 200, `ffmpeg has read ${frames} frames of ${playlist}`)
  }
  for (const uri of [`next-${free.media}.ts`, `next-v1-${free.media}.m4s`]) {
    t.ok(listed.has(uri), `${uri} is the next`)
  }
  const refused = statuses.filter((it) => !it.startsWith('206'))
  const lost = [`/e-${free.media - 1}.ts`, `/e-v1-${free.media - 1}.m4s`]
  t.ok(
    refused.every((it) => lost.some((name) => it.endsWith(name))),
    `only the lost segment is refused: ${refused.join()}`,
  )
})

function withStream(stream: ReturnType<typeof createClipStream>): MemoryService {
  const service = new MemoryService()
  service.stored.set('studio', stream)
  return service
}

function listOf(bytes: Buffer | undefined): Buffer[] | undefined {
  return bytes && [bytes]
}

async function fetchFrom(origin: string, { url, headers }: ProxyRequest): Promise<ProxyReply> {
  const { host: _, connection: __, ...rest } = headers
  const reply = await fetch(origin + url, { headers: { ...rest, 'accept-encoding': 'identity' } })
  const body = Buffer.from(await reply.arrayBuffer())
  return { status: reply.status, headers: Object.fromEntries(reply.headers), body }
}
