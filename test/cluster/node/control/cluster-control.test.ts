/**
 * Calls of the API on any node, over real HTTP and a registry in memory, with nodes that own streams or do not answer.
 */
import t, { type Test } from 'tap'
import { keyIdOf, parseKeyId } from '../../../../src/auth/key-list.ts'
import { verifyStreamKey } from '../../../../src/auth/stream-key.ts'
import { systemClock } from '../../../../src/timing/clock.ts'
import { NodeClient } from '../../../../src/cluster/edge/node-client.ts'
import { callNode } from '../../../../src/cluster/node/call-node.ts'
import { NodeCalls } from '../../../../src/auth/node-calls.ts'
import type { EndpointName } from '../../../../src/api/endpoints.ts'
import { SegmentCache } from '../../../../src/hls/store/segment-cache.ts'
import { ClusterControl } from '../../../../src/cluster/node/control/cluster-control.ts'
import { RegisteredStreams } from '../../../../src/cluster/node/registered/registered-streams.ts'
import { Records } from '../../../../src/service/records.ts'
import { Streams } from '../../../../src/service/streams.ts'
import type { Encoder } from '../../../../src/stream/publication.ts'
import { MemoryService, SECRET, signedCall, startApp } from '../../../http/memory-service.ts'
import { PUBLISHER_REPORT } from '../../../stream/publisher-report.ts'
import { callApi, tryApi } from '../../../support/service.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'

const JWT_SECRET = 'j'.repeat(32)
const calls = new NodeCalls(() => ['c'.repeat(32)], systemClock)
const client = new NodeClient({ calls })
const STUDIO = { stream_id: 'studio' }
const NEXT = { options: {}, keyExpiresAtMs: Date.now() + 3_600_000 }

async function startNode(t: Test, memory: MemoryRegistry, node: string) {
  const registry = memory.calls
  /** Commands to other nodes. */
  const commands: [node: string, command: unknown][] = []
  const settings = {
    ...{ formats: ['ts', 'cmaf'] as const, segmentSec: 1, maxSegmentSec: 10 },
    ...{ playlistSegments: 6, lingerSec: 60, lowLatency: true, partMs: 200 },
    ...{ reconnectGraceSec: 120, hasPlaybackSecret: false, webhookUrls: ['http://default/'] },
    clock: systemClock,
    readJwtSecrets: () => [JWT_SECRET] as const,
    readClusterSecrets: () => ['c'.repeat(32)],
  }
  const streams = new Streams({
    ...settings,
    ...{ cache: new SegmentCache({ maxBytes: 1e6 }), maxStreams: 10, maxBitrateBps: Infinity },
    ...{ createEpoch: () => node, resume: false, createSalt: () => 0 },
    ...{ onStream: () => undefined, onResumed: () => undefined, onViewers: () => undefined },
  })
  const registered = new RegisteredStreams({ ...settings, streams })
  const sent: { type: string; id: string; urls: readonly string[] }[] = []
  const urls = {
    playback: (id: string, formats: readonly string[]) => ({
      playlistUrl: `http://cluster/${id}/${formats.includes('ts') ? 'ts' : 'cmaf'}`,
      masterUrl: `http://cluster/${id}/cmaf`,
    }),
    watch: (id: string) => `http://cluster/watch/${id}`,
    srtWith: (key: string) => `srt://${node}:10080?streamid=${key}`,
    publishAt: () => '',
  }
  const control = new ClusterControl({
    ...{ ...settings, node, registry, streams, registered, urls },
    // The machine may be busy.
    call: (request) => callNode(client, { ...request, timeoutMs: 120_000 }),
    sendCommand: async (...command) => void commands.push(command),
    ...{ srt: { streamPorts: '', passphrase: '' }, ports: { invalidate: () => undefined } },
    slates: { load: async () => undefined },
    srtCaller: { check: () => undefined },
    claim: async () => undefined,
    readPlaybackSecrets: () => [],
    records: new Records({
      archiveOf: () => undefined,
      pullOf: () => undefined,
      pushesOf: () => [],
      ownershipOf: () => ({ node }),
      ...{
        hasPlaybackSecret: false,
        audienceOf: () => ({ viewers: 0 }),
      },
      urlsOf: (stream) => urls.playback(stream.id, streams.formatsOf(stream)),
      ownPolicyOf: (stream) => streams.ownPolicyOf(stream),
      keysOf: (stream) => streams.keysOf(stream),
      readLoad: () => undefined,
    }),
    notifier: {
      ready: ({ id, webhookUrls }) => sent.push({ type: 'ready', id, urls: webhookUrls }),
    },
    webhooks: { check: () => undefined },
    archive: undefined,
    isDraining: () => false,
  })
  const app = await startApp(t, new MemoryService(), {}, undefined, {
    ...{ control, nodeCalls: calls, nodeRoutes: control.routes },
  })
  const join = (url = app.url) => registry.renewNode({ node, url })
  await join()
  const api = (name: EndpointName, body: object = STUDIO) => callApi(app.url, name, body, SECRET)
  const tried = (name: EndpointName, body: object = STUDIO) => tryApi(app.url, name, body, SECRET)

  /** Owns the stream, with an encoder. */
  const claim = async (id = 'studio', keyId?: string) => {
    const { fence = 0 } = (await registry.get(id)) ?? {}
    const claimed = await registry.claim(id, { node, epoch: node, seenFence: fence })
    if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
    await registry.advance(
      id,
      { node, fence: claimed.stream.fence },
      { serial: 1, status: 'STREAMING', entries: [], first: 0, free: claimed.free },
    )
    const { stream } = await streams.start({ streamId: id })
    registered.refresh((await registry.get(id))!)
    let isClosed = false
    const encoder: Encoder = {
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => void (isClosed = true),
      ...(keyId !== undefined && { keyId }),
    }
    stream.publish(encoder)
    return { stream, isClosed: () => isClosed }
  }
  return {
    node,
    registry,
    commands,
    unannounced: () => memory.model.outboxes.unannounced(node, 10),
    streams,
    control,
    app,
    api,
    tried,
    claim,
    join,
    sent,
  }
}

async function startCluster(t: Test) {
  const memory = new MemoryRegistry(systemClock)
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => startNode(t, memory, name)))
  return { memory, a: a!, b: b!, c: c! }
}

const claimsOf = (streamKey: string) =>
  verifyStreamKey(streamKey, { secrets: [JWT_SECRET], now: new Date() })

t.test('a stream that one node has started is READY on all, with its options', async (t) => {
  const { a, b } = await startCluster(t)
  const media = { formats: ['cmaf'], segment_sec: 2, part_ms: 300 }
  const options = { ...media, latency_ms: 250, allow_from: ['10.0.0.0/8'] }
  const started = await a.api('start-stream', { ...STUDIO, ...options })
  t.match(started, { status: 200, body: { data: { stream_id: 'studio', status: 'READY' } } })
  t.match(started.body.data['srt_url'], /^srt:\/\/a:10080\?streamid=mode=publish,rid=studio,token=/)
  t.match(await claimsOf(started.body.data['stream_key']), { streamId: 'studio' })
  t.strictSame(a.sent, [{ type: 'ready', id: 'studio', urls: ['http://default/'] }])
  const masterUrl = started.body.data['master_url']
  t.match(started.body.data, { playlist_url: masterUrl, master_url: /studio/ }, 'without ts')
  for (const node of [a, b]) {
    const { status, body } = await node.api('status')
    t.equal(status, 200)
    t.match(body.data, { status: 'READY', live: false, options, publisher: null })
    t.match(body.data, { playlist_url: masterUrl, master_url: masterUrl })
    t.strictSame([body.data['node'], body.data['stale']], [undefined, undefined])
  }
  t.match(await b.tried('status', { stream_id: 'other' }), { status: 404 })
  t.match(await b.tried('kick', { stream_id: 'other' }), { status: 404 })
  t.match(await b.tried('stop-stream', { stream_id: 'other' }), { status: 404 })
})

t.test('a second start on another node issues a key, and replaces what it names', async (t) => {
  const { a, b, c } = await startCluster(t)
  const first = await a.api('start-stream', {
    ...{ ...STUDIO, formats: ['cmaf'], segment_sec: 2, latency_ms: 250 },
    webhook_urls: ['http://one/'],
  })
  const owner = await c.claim()
  const second = await b.api('start-stream', {
    ...{ ...STUDIO, formats: ['ts'], segment_sec: 4, latency_ms: 500 },
    webhook_urls: ['http://two/'],
  })
  t.not(second.body.data['stream_key'], first.body.data['stream_key'])
  for (const { body } of [first, second]) await claimsOf(body.data['stream_key'])
  t.equal(second.body.data['status'], 'STREAMING')
  t.strictSame(owner.stream.webhookUrls, ['http://two/'], 'the owner knows when the call returns')
  t.equal(owner.stream.policy.latencyMs, 500)
  t.equal(owner.isClosed(), false)
  t.match((await a.api('status')).body.data, {
    options: { formats: ['cmaf'], segment_sec: 2, latency_ms: 500 },
    playlist_url: first.body.data['playlist_url'],
  })
})

t.test('the passphrase of a stream is the same in the answers of all nodes', async (t) => {
  const { a, b, c } = await startCluster(t)
  const [one, two] = await Promise.all(
    [a, b].map((node) => node.api('start-stream', { ...STUDIO, encryption: true })),
  )
  const { passphrase } = one!.body.data
  t.match(passphrase, /^[\w-]{32}$/)
  t.equal(two!.body.data['passphrase'], passphrase)
  const third = await c.api('start-stream')
  t.equal(third.body.data['passphrase'], passphrase)
  t.equal((await claimsOf(third.body.data['stream_key'])).encryption?.passphrase, passphrase)
  const owner = await c.claim()
  t.equal(owner.stream.encryption?.passphrase, passphrase)
})

t.test('status and list are those of the owner on every node', async (t) => {
  const { a, b, c } = await startCluster(t)
  for (const [index, node] of [a, b, c, a].entries()) {
    await node.api('start-stream', { stream_id: `s${index}` })
  }
  await b.claim('s0')
  await c.claim('s1')
  const ofOwner = { status: 'STREAMING', publisher: { remote: PUBLISHER_REPORT.remote } }
  for (const node of [a, b, c]) {
    const { body } = await node.api('status', { stream_id: 's0' })
    t.match(body.data, { ...ofOwner, node: 'b', started_at: /^\d{4}-.*Z$/ })
    t.notOk('stale' in body.data)
    const first = await node.api('streams', { limit: 3 })
    t.match(first.body.data, {
      streams: [
        { ...ofOwner, stream_id: 's0', node: 'b' },
        { ...ofOwner, stream_id: 's1', node: 'c' },
        { stream_id: 's2', status: 'READY', publisher: null },
      ],
      next: 's2',
    })
    const rest = await node.api('streams', { limit: 3, after: 's2' })
    t.match(rest.body.data, { streams: [{ stream_id: 's3' }], next: null })
    const ready = await node.api('streams', { status: 'READY' })
    t.strictSame(
      ready.body.data['streams'].map((each: Record<string, unknown>) => each['stream_id']),
      ['s2', 's3'],
    )
  }
})

t.test('a kick on any node disconnects the encoder once, and bans it on all', async (t) => {
  const { a, b, c } = await startCluster(t)
  await a.api('start-stream')
  const owner = await b.claim()
  const kickedMs = systemClock.wallMs()
  const kicked = await c.api('kick', { ...STUDIO, ban_sec: 60 })
  t.match(kicked, { status: 200, body: { data: { status: 'INTERRUPTED', node: 'b' } } })
  t.equal(owner.isClosed(), true)
  const fromMs = Date.parse(kicked.body.data['banned_until']) - 60_000
  // Each time is rounded.
  t.ok(fromMs >= kickedMs - 2 && fromMs <= systemClock.wallMs() + 2, `${fromMs - kickedMs} ms`)
  const again = await b.claim()
  await a.api('start-stream')
  t.equal(again.isClosed(), false, 'a later refresh does not repeat it')
  t.notOk('banned_until' in (await a.api('kick')).body.data, 'a kick without a ban ends it')
  t.equal(again.isClosed(), true)
})

t.test('a stop on any node ends the stream at its owner', async (t) => {
  const { a, b, c } = await startCluster(t)
  const { body } = await a.api('start-stream')
  const owner = await b.claim()
  const reasons: string[] = []
  owner.stream.on('end', ({ reason }) => reasons.push(reason))
  const stopped = await c.api('stop-stream', { ...STUDIO, revoke: true })
  t.match(stopped, { status: 200, body: { data: { status: 'STOPPED', node: 'b' } } })
  t.notOk('stale' in stopped.body.data)
  t.strictSame(reasons, ['api'])
  t.equal(owner.isClosed(), true)
  t.match(await a.api('stop-stream'), { status: 200, body: { data: { status: 'STOPPED' } } })
  t.strictSame(reasons, ['api'], 'once')
  t.strictSame(
    [...a.sent, ...b.sent, ...c.sent].map(({ type }) => type),
    ['ready'],
  )

  const { issuedAtSec = Infinity } = await claimsOf(body.data['stream_key'])
  const restarted = await c.api('start-stream')
  const { keyFloorSec = 0 } = (await c.registry.get('studio')) ?? {}
  t.ok(keyFloorSec > issuedAtSec, 'the old key is revoked')
  const renewed = await claimsOf(restarted.body.data['stream_key'])
  t.ok((renewed.issuedAtSec ?? 0) >= keyFloorSec, 'the new key is not')
  t.match((await a.api('status')).body.data, { status: 'READY' })
  t.match((await b.api('status')).body.data, { status: 'READY' }, 'also where the last run lingers')
})

t.test('any node lists the keys of a stream, and revokes one of them at its owner', async (t) => {
  const { a, b, c } = await startCluster(t)
  const issued = { ...STUDIO, key_lifetime_sec: 86_400, backup: true }
  const { data } = (await a.api('start-stream', issued)).body
  const leaked = keyIdOf(await claimsOf(data['short_stream_key']))
  const backup = keyIdOf(await claimsOf(data['backup_stream_key']))
  const idsAt = async (node: typeof a) =>
    (await node.api('status')).body.data['keys'].map((key: { key_id: string }) => key.key_id)
  t.strictSame((await idsAt(c)).toSorted(), [backup, leaked].toSorted(), 'without an owner')

  const owner = await b.claim('studio', leaked)
  const renewed = keyIdOf(
    await claimsOf(
      (await c.api('start-stream', { ...STUDIO, key_lifetime_sec: 3600 })).body.data['stream_key'],
    ),
  )
  const { keys } = (await a.api('status')).body.data
  const used = keys.find((key: { key_id: string }) => key.key_id === leaked)
  t.match(used, { source: 'main', issued_at: String, expires_at: data['expires_at'] })
  t.ok(Date.parse(used.last_used_at) >= Date.parse(used.issued_at))
  t.notOk('keys' in (await a.api('streams', {})).body.data['streams'][0])

  const revoked = await c.api('revoke-key', { ...STUDIO, key_id: leaked })
  t.match(revoked.body.data, { node: 'b', status: 'INTERRUPTED' })
  t.equal(owner.isClosed(), true)
  for (const node of [a, b, c]) {
    const ids: string[] = await idsAt(node)
    t.notOk(ids.includes(leaked))
    for (const kept of [backup, renewed]) t.ok(ids.includes(kept))
  }
  const refused = { code: 'STREAM_KEY_REVOKED' }
  t.throws(() => b.streams.checkKey({ streamId: 'studio', ...parseKeyId(leaked)! }), refused)
  b.streams.checkKey({ streamId: 'studio', ...parseKeyId(renewed)! })
  t.strictSame((await c.registry.get('studio'))?.revokedKeys, [leaked], 'also for the next owner')
  await a.api('stop-stream')
  t.strictSame((await c.registry.start('studio', NEXT)).revokedKeys, [leaked], 'and the next run')

  const other = { stream_id: 'other', key_id: leaked }
  t.match(await c.tried('revoke-key', other), {
    status: 404,
    body: { code: 'STREAM_NOT_FOUND', error: 'no such stream; the key is refused from now on' },
  })
  t.strictSame((await a.registry.start('other', NEXT)).revokedKeys, [leaked])
})

t.test('a stream without an owner stops on any node, with one webhook', async (t) => {
  const { a, b, c } = await startCluster(t)
  await a.api('start-stream', { ...STUDIO, webhook_urls: ['http://one/'] })
  t.match((await b.api('stop-stream')).body.data, { status: 'STOPPED', playlist: {} })
  t.match((await c.api('stop-stream')).body.data, { status: 'STOPPED' })
  const ends = a.unannounced()
  t.match(ends, [{ streamId: 'studio', reason: 'api', webhookUrls: ['http://one/'] }])
  t.equal(ends.length, 1)
  const revoked = await c.tried('stop-stream', { stream_id: 'other', revoke: true })
  t.match(revoked, { status: 404, body: { error: /keys issued for it so far are revoked/ } })
})

t.test('an owner that does not answer leaves stale records, and finds its commands', async (t) => {
  const { a, b } = await startCluster(t)
  await a.api('start-stream')
  const owner = await b.claim()
  await b.join('http://127.0.0.1:1')
  for (const name of ['status', 'kick'] as const) {
    t.match(await a.api(name), {
      status: 200,
      body: { data: { status: 'STREAMING', stale: true, node: 'b', publisher: null } },
    })
  }
  t.match((await a.api('streams')).body.data['streams'], [{ stream_id: 'studio', stale: true }])
  t.equal(owner.isClosed(), false)
  t.match((await a.api('stop-stream')).body.data, { status: 'STOPPED', stale: true })
  t.equal(owner.stream.status, 'STREAMING')
  t.strictSame(a.commands.at(-1), ['b', { refresh: 'studio' }])
  await b.control.refresh('studio')
  t.equal(owner.stream.status, 'STOPPED')
  t.equal(owner.isClosed(), true)
  t.strictSame(a.unannounced(), [], 'its webhook is left to the owner')
})

t.test('any node may announce the end of a stream whose owner is dead', async (t) => {
  const { a, b, c } = await startCluster(t)
  await a.api('start-stream')
  await b.claim()
  await b.registry.leaveNode('b')
  await b.app.close()
  t.match((await c.api('status')).body.data, { status: 'STREAMING', stale: true })
  t.match((await c.api('stop-stream')).body.data, { status: 'STOPPED', stale: true })
  t.match(c.unannounced(), [{ streamId: 'studio', webhookUrls: undefined }])
})

t.test('without Redis calls are refused with 503, except status at the owner', async (t) => {
  const { memory, a, b } = await startCluster(t)
  await a.api('start-stream')
  await b.claim()
  memory.fault = 'away'
  for (const name of ['start-stream', 'stop-stream', 'kick', 'status', 'streams'] as const) {
    const reply = await a.tried(name)
    t.match(reply, { status: 503, body: { code: 'REGISTRY_UNAVAILABLE' } }, name)
  }
  t.match((await b.api('status')).body.data, { status: 'STREAMING', node: 'b' })
  const { headers } = await signedCall(a.app, 'POST', '/api/start-stream', STUDIO)
  t.equal(headers['retry-after'], '1')
})

t.test('a call of another node that is not as agreed is refused', async (t) => {
  const { a } = await startCluster(t)
  const handle = a.control.routes['records']!
  for (const body of [undefined, {}, { streamIds: ['../../service/x'], refresh: false }]) {
    await t.rejects(handle(body), { code: 'BODY_INVALID' })
  }
  t.strictSame(await handle({ streamIds: ['none'], refresh: true }), { records: [] })
})
