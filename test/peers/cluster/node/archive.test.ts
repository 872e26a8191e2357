/**
 * The archive of a stream whose encoder is lost three times, whose source is switched, and whose node is killed, in a store
 * of which a fifth of the requests fail, half of them after they were carried out: processes as operators start them, with
 * `CLUSTER_BACKUP`. A programme of a minute has all that one of ten has.
 */
import t from 'tap'
import type { EndpointName } from '../../../../src/api/endpoints.ts'
import { checkStream } from '../../../../src/check/index.ts'
import { publishDemo } from '../../../support/demo-encoder.ts'
import { createRandom } from '../../../support/random.ts'
import { startS3Server, type TestPut } from '../../../support/s3-server.ts'
import { callApi } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'
import { createSecrets, startNodes, type NodeProcess } from '../../support/node-processes.ts'
import { startRedis } from '../../support/redis.ts'
import { requireTool } from '../../support/tools.ts'

const PLAYLIST = 'cmaf-video-1.m3u8'

t.test('no segment is missing that the store could take', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const redis = await startRedis(t)
  const random = createRandom(29)
  let isFailing = true
  const puts: TestPut[] = []
  const store = await startS3Server(t, {
    refuses: () => isFailing && random.chance(0.1),
    loses: () => isFailing && random.chance(0.1),
    onPut: (put) => puts.push(put),
  })
  const secrets = createSecrets()
  const nodes = await startNodes(
    t,
    'serve',
    {
      ...secrets,
      ...{ REDIS_URL: redis.url, CLUSTER_BACKUP: 'true', HLS_SEGMENT_SEC: '1' },
      ...{ ARCHIVE_URL: store.url, ARCHIVE_ENDPOINT: store.endpoint },
      ARCHIVE_PUBLIC_URL: `${store.endpoint}/archive/live`,
      AWS_ACCESS_KEY_ID: store.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: store.credentials.secretAccessKey,
    },
    2,
  )
  const [first, second] = nodes as [NodeProcess, NodeProcess]
  const api = async (node: NodeProcess, name: EndpointName, body: object = {}) =>
    (await callApi(node.url, name, { stream_id: 'studio', ...body }, secrets.HMAC_SECRET)).body.data
  const keys = await until('the registry answers', () =>
    api(first, 'start-stream', { backup: true }).catch(() => undefined),
  )
  const urlAt = ({ srtPort }: NodeProcess, url: unknown) =>
    String(url).replace(/:\d+\?/, `:${srtPort}?`)
  const publish = (node: NodeProcess, name = 'srt_url') =>
    publishDemo(t, urlAt(node, keys[name]), { retry: true, mayFail: true })

  /** URIs of all segments that players were told of. */
  const seen = new Set<string>()
  const ended = new AbortController()
  const watching = (async () => {
    while (!ended.signal.aborted) {
      const response = await fetch(`${second.url}/video/studio/${PLAYLIST}`).catch(() => undefined)
      const listed = response?.ok ? segmentsOf(await response.text()) : []
      for (const { uri, gap } of listed) if (!gap) seen.add(uri)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  })()
  t.teardown(() => ended.abort())
  const grows = (segments: number) => {
    const target = seen.size + segments
    return until(`${segments} segments more`, () => seen.size >= target)
  }

  let main = publish(first)
  await grows(5)
  for (let losses = 0; losses < 3; losses++) {
    main.stop()
    await main.end
    main = publish(first)
    await grows(4)
  }
  publish(first, 'backup_srt_url')
  await until('the source is switched', () =>
    api(first, 'switch-source', { source: 'backup' }).catch(() => undefined),
  )
  await grows(12)
  first.program.kill('SIGKILL')
  const epoch = epochOf([...seen].at(-1)!)
  publish(second)
  await grows(8)
  await api(second, 'stop-stream')
  ended.abort()
  await watching
  const archive = await until('the archive is complete', async () => {
    const { archive: report } = await api(second, 'status')
    return report?.state === 'COMPLETE' && report
  })
  isFailing = false
  const folder = String(archive.url).replace(/[^/]*$/, '')
  const segments = segmentsOf(await (await fetch(folder + PLAYLIST)).text())
  const stored = new Set(segments.filter(({ gap }) => !gap).map(({ uri }) => uri))
  // Listed a moment before the kill, maybe in a response under way, it may be gone with its node.
  const newest = [...seen].findLast((uri) => epochOf(uri) === epoch)
  t.strictSame(
    [...seen].filter((uri) => uri !== newest && !stored.has(uri)),
    [],
    'what was live is stored',
  )
  /** Bodies of the same name that the store has confirmed. */
  const bodies = new Map<string, Set<string>>()
  for (const { key, status, etag } of puts) {
    if (status !== 200 || /\.(m3u8|json)$/.test(key)) continue
    bodies.set(key, (bodies.get(key) ?? new Set()).add(etag!))
  }
  t.ok(bodies.size > stored.size)
  t.strictSame(
    [...bodies].filter(([, etags]) => etags.size > 1),
    [],
    'no media is replaced',
  )
  const { findings } = await checkStream({ url: archive.url, seconds: 5 })
  // The store compresses nothing.
  const broken = findings.filter(({ rule }) => rule.id !== 'GZIP_NOT_OFFERED')
  t.strictSame(
    broken.map(({ rule, count, evidence }) => [rule.id, count, evidence]),
    [],
  )
})

/** What the process that has made a segment puts before its name. */
function epochOf(uri: string): string {
  return uri.slice(0, uri.indexOf('-'))
}

function segmentsOf(text: string) {
  return [...text.matchAll(/(#EXT-X-GAP\n)?(?:#(?!EXT-X-GAP|EXTINF).*\n)*#EXTINF.*\n(.*)\n/g)].map(
    ([, gap, uri]) => ({ uri: uri!, gap: gap !== undefined }),
  )
}
