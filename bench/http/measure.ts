/**
 * Delivery of a playlist and a segment of a live stream, by Millrace and by nginx.
 *
 * @module
 */
import { until } from '../../test/support/until.ts'
import { segmentUris } from '../../test/support/viewer.ts'
import { startSenders } from '../ingest/senders.ts'
import { isInstalled } from '../support/programs.ts'
import { startService } from '../support/service.ts'
import { usageOf } from '../support/usage.ts'
import { runLoad, type LoadResult, type LoadTool } from './load.ts'
import { startNginx, type Nginx } from './nginx.ts'

const STREAM_ID = 'bench'
/** Number of segments in a full playlist. */
const SEGMENTS = 6

export interface HttpLoad {
  readonly bitsPerSecond: number
  readonly connections: number
  /** Duration of each of the `rounds` runs per server, file and tool. */
  readonly seconds: number
  readonly rounds: number
}

export interface HttpResult extends LoadResult {
  readonly server: 'millrace' | 'nginx'
  readonly file: 'playlist' | 'segment'
  readonly tool: LoadTool
  readonly sizeBytes: number
  /** CPU in cores. */
  readonly cpuLoad: number
  readonly cpuUsPerReply: number
  readonly rssBytes: number
}

/** Server of both files. */
interface Contender {
  readonly server: HttpResult['server']
  readonly pids: readonly number[]
  url(file: HttpResult['file']): Promise<string>
}

/** Best round of each combination of server, file and tool, which is the least disturbed one. */
export async function measureHttp(load: HttpLoad): Promise<HttpResult[]> {
  const service = await startService()
  const publishUrl = await service.start(STREAM_ID)
  const senders = await startSenders([publishUrl], {
    ...{ bitsPerSecond: load.bitsPerSecond, sender: 'millrace', senders: 1, spreadMs: 0 },
    seconds: load.seconds,
  })
  const playlistUrl = `${service.httpUrl}/video/${STREAM_ID}/playlist.m3u8`
  let nginx: Nginx | undefined
  try {
    const millrace: Contender = {
      server: 'millrace',
      pids: [service.pid],
      url: async (file) => (file === 'playlist' ? playlistUrl : newestSegment(playlistUrl)),
    }
    await Promise.race([steady(playlistUrl), senders.failure])
    const contenders = [millrace]
    if (isInstalled('nginx')) {
      nginx = await startNginx({
        'playlist.m3u8': await fetchBytes(playlistUrl),
        'segment.ts': await fetchBytes(await millrace.url('segment')),
      })
      contenders.push(nginxContender(nginx))
    }
    return await Promise.race([runAll(contenders, load), senders.failure])
  } finally {
    await nginx?.stop()
    await senders.stop()
    await service.stop()
  }
}

function nginxContender({ url, pids }: Nginx): Contender {
  return {
    server: 'nginx',
    pids,
    url: async (file) => `${url}/${file === 'playlist' ? 'playlist.m3u8' : 'segment.ts'}`,
  }
}

/** Servers take turns within a round, so that other load affects them alike. */
async function runAll(contenders: readonly Contender[], load: HttpLoad): Promise<HttpResult[]> {
  const tools = (['autocannon', 'wrk'] as const).filter(
    (tool) => tool === 'autocannon' || isInstalled(tool),
  )
  const results: HttpResult[] = []
  for (const tool of tools) {
    for (const file of ['playlist', 'segment'] as const) {
      const rounds: HttpResult[] = []
      for (let round = 0; round < load.rounds; round++) {
        for (const contender of contenders) rounds.push(await runOne(contender, file, tool, load))
      }
      results.push(
        ...contenders.map(({ server }) => best(rounds.filter((each) => each.server === server))),
      )
    }
  }
  return results
}

async function runOne(
  { server, pids, url }: Contender,
  file: HttpResult['file'],
  tool: LoadTool,
  { connections, seconds }: HttpLoad,
): Promise<HttpResult> {
  const target = await url(file)
  const { length: sizeBytes } = await fetchBytes(target)
  const [before, startMs] = [usageOf(pids), performance.now()]
  const result = await runLoad(tool, { url: target, connections, seconds })
  const [after, elapsedSec] = [usageOf(pids), (performance.now() - startMs) / 1000]
  return {
    server,
    file,
    tool,
    sizeBytes,
    ...result,
    cpuLoad: (after.cpuSec - before.cpuSec) / elapsedSec,
    cpuUsPerReply: ((after.cpuSec - before.cpuSec) * 1e6) / (result.repliesPerSec * seconds),
    rssBytes: after.rssBytes,
  }
}

function best(rounds: readonly HttpResult[]): HttpResult {
  return rounds.reduce((a, b) => (b.repliesPerSec > a.repliesPerSec ? b : a))
}

/** Waits until the playlist is full. */
async function steady(playlistUrl: string): Promise<void> {
  await until(
    'a playlist of full length',
    async () => {
      const reply = await fetch(playlistUrl)
      return reply.ok && segmentUris(await reply.text()).length >= SEGMENTS
    },
    { timeoutMs: 60_000, everyMs: 200 },
  )
}

async function newestSegment(playlistUrl: string): Promise<string> {
  const playlist = (await fetchBytes(playlistUrl)).toString()
  return new URL(segmentUris(playlist).at(-1)!, playlistUrl).href
}

async function fetchBytes(url: string): Promise<Buffer> {
  const reply = await fetch(url)
  if (!reply.ok) throw new Error(`${url} answered ${reply.status}`)
  return Buffer.from(await reply.arrayBuffer())
}
