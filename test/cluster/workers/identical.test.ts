/**
 * Two workers side by side: every URL has the same bytes at both, while the encoder comes back twice. SOAK_SEC sets the
 * duration, in segments of a second.
 */
import { createHash } from 'node:crypto'
import { Agent, get, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { segmentUris } from '../../support/viewer.ts'
import { publishStream, serveWithWorkers } from './workers-service.ts'

const SECONDS = Number(process.env['SOAK_SEC'] ?? 15)

/** Connections are handed to the workers in turn. */
const CONNECTIONS = 4

const PLAYLISTS = ['playlist.m3u8', 'master.m3u8', 'playlist.m3u8?_HLS_skip=YES']

t.test('all workers answer every URL byte-identically, ETags included', async (t) => {
  const service = await serveWithWorkers(t)
  await publishStream(t, service, 'studio')
  const base = `${service.url}/video/studio/`
  const agents = Array.from({ length: CONNECTIONS }, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    return agent
  })
  const ask = async (agent: Agent, path: string, headers = {}) => {
    const [reply] = (await once(get(base + path, { agent, headers }), 'response')) as [
      IncomingMessage,
    ]
    return { status: reply.statusCode!, headers: reply.headers, body: await buffer(reply) }
  }
  /** First reply for each URL, with its ETag for a playlist, and its coding. */
  const known = new Map<string, string>()
  const wrong: string[] = []
  let compared = 0
  const compare = async (agent: Agent, path: string, headers = {}) => {
    const reply = await ask(agent, path, headers)
    if (reply.status !== 200) wrong.push(`${path}: ${reply.status}`)
    const { date: _, connection: __, 'keep-alive': ___, ...kept } = reply.headers
    const what = JSON.stringify([kept, createHash('sha256').update(reply.body).digest('hex')])
    const version = path.includes('.m3u8') ? String(kept.etag) : ''
    const key = `${path} ${version} ${JSON.stringify(headers)}`
    const first = known.get(key) ?? what
    if (known.has(key)) compared++
    known.set(key, first)
    if (first !== what) wrong.push(`${key}: ${first} and ${what}`)
    return reply.body
  }

  const media = new Set<string>()
  const segments = new Set<string>()
  let kicks = 0
  const isEnough = () => segments.size >= SECONDS && compared > 20 * SECONDS && kicks === 2
  while (wrong.length === 0 && !isEnough()) {
    const lists = await Promise.all(
      agents.map(async (agent) => {
        for (const path of PLAYLISTS) await compare(agent, path)
        const zipped = await compare(agent, 'playlist.m3u8', { 'accept-encoding': 'gzip' })
        return gunzipSync(zipped).toString()
      }),
    )
    for (const uri of lists.flatMap(segmentUris)) segments.add(uri)
    const uris = lists.flatMap((list) => [
      ...segmentUris(list),
      ...Array.from(list.matchAll(/^#EXT-X-PART:.*URI="([^"]+)"/gm), ([, uri]) => uri!),
    ])
    for (const uri of new Set(uris)) {
      if (media.has(uri)) continue
      media.add(uri)
      await Promise.all(agents.map((agent) => compare(agent, uri)))
    }
    if (kicks < 2 && segments.size > ((kicks + 1) * SECONDS) / 3) {
      kicks++
      await service.api('kick', { stream_id: 'studio' })
    }
    // The pace of players that poll: without it most replies were those of the round before.
    await sleep(100)
  }
  t.strictSame(wrong, [])
  t.comment(`${compared} replies compared, ${media.size} segments and parts`)
})
