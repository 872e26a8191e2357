/**
 * The archive of a stream in simulated time, in a store that fails as it is told.
 */
import t from 'tap'
import type { Archive } from '../../src/archive/archive.ts'
import { PACKET_BYTES, readPid } from '../../src/mpegts/packet.ts'
import { FOLDER, setUp, WALL_MS } from './simulated-archive.ts'

function uris(playlist: string): string[] {
  return playlist.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

/** The packets of PAT and PMT. */
function tablesIn(payload: Buffer): Buffer {
  const packets = Array.from({ length: payload.length / PACKET_BYTES }, (_, index) =>
    payload.subarray(index * PACKET_BYTES, (index + 1) * PACKET_BYTES),
  )
  return Buffer.concat(packets.filter((packet) => [0, 4096].includes(readPid(packet, 0))))
}

t.test('a whole programme: media before playlists, EVENT, then VOD', async (t) => {
  const { begin, connect, run, store, events } = setUp()
  const { stream, archive } = begin()
  connect(stream)
  const live = new Map<string, Buffer>()
  stream.on('segment', ({ uri, bytes, rendition }) => {
    if (rendition.startsWith('cmaf')) live.set(uri, Buffer.from(bytes))
  })
  await run(31)
  t.match(store.text('cmaf-video-1.m3u8'), '#EXT-X-PLAYLIST-TYPE:EVENT\n')
  t.notMatch(store.text('cmaf-video-1.m3u8'), '#EXT-X-ENDLIST')
  t.same(
    events.map(({ type }) => type),
    ['started'],
  )
  t.equal(events[0]!.url, `s3://bucket/${FOLDER}/master.m3u8`)
  stream.stop('api')
  await run(2)
  t.same(
    events.map(({ type }) => type),
    ['started', 'completed'],
  )
  const listed = new Set<string>()
  for (const name of ['cmaf-video-1.m3u8', 'cmaf-audio-1.m3u8']) {
    const playlist = store.text(name)
    t.match(playlist, '#EXT-X-PLAYLIST-TYPE:VOD\n')
    t.match(playlist, /#EXT-X-ENDLIST\n$/)
    t.notMatch(playlist, 'GAP')
    for (const uri of uris(playlist)) listed.add(uri)
    t.match(store.text('master.m3u8'), name)
  }
  t.same(listed, new Set(live.keys()), 'all segments, and no others')
  for (const [uri, bytes] of live)
    t.ok(store.files.get(`${FOLDER}/${uri}`)?.equals(bytes), 'byte for byte')
  const firstPlaylist = store.order.findIndex((key) => key.endsWith('video-1.m3u8'))
  const firstMaster = store.order.findIndex((key) => key.endsWith('master.m3u8'))
  t.ok(firstPlaylist < firstMaster)
  t.notOk(
    [...store.files.keys()].some((key) => /\.ts$|playlist\.m3u8/.test(key)),
    'CMAF alone',
  )
  const index = JSON.parse(store.text('index.json')) as Record<string, unknown>
  t.match(index, { state: 'COMPLETE', gap_count: 0, rows: [], segments: live.size })
  t.match(archive.reportOf(stream), { state: 'COMPLETE', gaps: 0, waitingBytes: 0 })
  const last = ['index', 'cmaf-video-1', 'cmaf-audio-1', 'master', 'index']
  t.same(
    store.order.slice(-last.length).map((key) => key.slice(FOLDER.length + 1).split('.')[0]),
    last,
    'the index first, and again once all is complete',
  )
})

t.test('what does not fit is a gap, and told once; live goes on', async (t) => {
  const { begin, connect, run, store, events } = setUp({ maxBytes: 1024 * 1024 })
  const { stream, archive } = begin()
  connect(stream)
  await run(11)
  store.fails = () => true
  await run(60)
  t.equal(stream.report().live, true)
  t.ok(stream.report().warnings.some(({ code }) => code === 'ARCHIVE_GAPS'))
  t.match(archive.reportOf(stream), { state: 'BEHIND', error: 'The store does not answer' })
  t.ok(archive.stats.waitingBytes <= 1024 * 1024)
  store.fails = () => false
  await run(90)
  t.same(
    events.map(({ type }) => type),
    ['started', 'failed'],
  )
  stream.stop('api')
  await run(10)
  const report = archive.reportOf(stream)!
  t.match(report, { state: 'COMPLETE', gaps: 1 })
  const playlist = store.text('cmaf-video-1.m3u8')
  const gaps = playlist.split('#EXT-X-GAP').length - 1
  t.ok(gaps > 10 && gaps < 60, `${gaps} gaps`)
  for (const [index, uri] of uris(playlist).entries()) {
    const isGap = playlist.split(/#EXTINF.*\n/)[index]!.includes('#EXT-X-GAP')
    t.equal(store.files.has(`${FOLDER}/${uri}`), !isGap, uri)
  }
})

t.test('requests that fail are repeated until nothing is missing', async (t) => {
  const { begin, connect, run, store } = setUp()
  const { stream, archive } = begin()
  let requests = 0
  store.fails = () => requests++ % 10 === 0
  store.loses = () => requests++ % 10 === 0
  const encoder = connect(stream)
  for (let losses = 0; losses < 3; losses++) {
    await run(20)
    encoder.isPaused = true
    await run(7)
    encoder.isPaused = false
  }
  stream.stop('api')
  await run(50)
  t.match(archive.reportOf(stream), { state: 'COMPLETE', gaps: 0 })
  t.notMatch(store.text('cmaf-audio-1.m3u8'), 'GAP')
  t.same(store.overwritten, [])
})

t.test('media of the same name that is not the same is not replaced, and is a gap', async (t) => {
  const { begin, connect, run, store } = setUp()
  const { stream, archive } = begin()
  store.conflicts = (key) => key.endsWith('-v1-3.m4s')
  connect(stream)
  await run(15)
  stream.stop('api')
  await run(5)
  t.match(archive.reportOf(stream), { state: 'COMPLETE', gaps: 1 })
  t.match(store.text('cmaf-video-1.m3u8'), /#EXT-X-GAP\n.*\n.*\ne-v1-3\.m4s/)
})

t.test('another process goes on where the one before was killed', async (t) => {
  const { begin, connect, run, store, events, takeOver } = setUp()
  const { stream } = begin()
  connect(stream)
  await run(33)
  const before = store.text('cmaf-video-1.m3u8')
  const stored = new Set([...store.files.keys()].filter((key) => key.endsWith('.m4s')))
  // The media of the last segments is stored, and no playlist lists it.
  t.ok([...stored].some((key) => !before.includes(key.split('/')[2]!) && key.includes('-v1-')))
  const { stream: next, archive } = takeOver(stream)
  await run(4)
  connect(next)
  await run(30)
  next.stop('api')
  await run(5)
  t.match(archive.reportOf(next), { state: 'COMPLETE', gaps: 1 }, 'what was open at the end')
  const after = store.text('cmaf-video-1.m3u8')
  const body = (text: string) => text.slice(text.indexOf('#EXT-X-MAP'))
  t.ok(body(after).startsWith(body(before)), 'the playlist has grown')
  t.equal(after.split('#EXT-X-GAP').length - 1, 1)
  for (const uri of uris(after.replace(/#EXT-X-GAP\n.*\n.*\n.*\n/, '')))
    t.ok(store.files.has(`${FOLDER}/${uri}`), uri)
  const listed = new Set(uris(after))
  for (const key of stored)
    if (key.includes('-v1-')) t.ok(listed.has(key.split('/')[2]!), 'what was stored is listed')
  t.same(store.overwritten, [])
  t.equal(archive.stats.errors, 0, 'what is not there yet is no error')
  t.same(
    events.map(({ type }) => type),
    ['started', 'completed'],
  )
  t.match(after, '#EXT-X-DISCONTINUITY\n')
})

t.test(
  'a clip is a playlist over the segments of the archive, of the present run and of an earlier one',
  async (t) => {
    const { begin, connect, run, store, createArchive } = setUp()
    const { stream, archive } = begin()
    connect(stream)
    await run(31)
    const clipOf = async (from: Archive, request: { run?: string }) => {
      const range = { from: new Date(WALL_MS + 10_500), to: new Date(WALL_MS + 14_000) }
      return from.clip({ streamId: 'studio', ...range, ...request })
    }
    const clip = await clipOf(archive, {})
    t.match(clip, { durationSec: 4, gapSec: 0 })
    t.ok(clip.from.getTime() <= WALL_MS + 10_500 && clip.to.getTime() >= WALL_MS + 14_000)
    const name = clip.url.split('/').at(-1)!
    const multivariant = store.text(name)
    t.notMatch(multivariant, /(^|")cmaf/m)
    const playlists = multivariant.match(/clip-[\d-]+-cmaf-(video|audio)-1\.m3u8/g)!
    t.equal(new Set(playlists).size, 2)
    for (const playlist of playlists) {
      const text = store.text(playlist)
      t.match(text, /^#EXTM3U\n(.*\n)*#EXT-X-PLAYLIST-TYPE:VOD\n(.*\n)*#EXT-X-ENDLIST\n$/)
      t.equal(text.split('#EXT-X-MAP').length, 2)
      for (const uri of uris(text)) t.ok(store.files.has(`${FOLDER}/${uri}`), uri)
    }
    const [open, closed] = [new Date(WALL_MS + 20_000), new Date(WALL_MS + 3_600_000)]
    const upTo = await archive.clip({ streamId: 'studio', from: open, to: closed })
    await run(11)
    const longer = await archive.clip({ streamId: 'studio', from: open, to: closed })
    t.not(longer.url, upTo.url, 'another clip has another name')
    const clips = await Promise.allSettled(Array.from({ length: 20 }, () => clipOf(archive, {})))
    t.ok(clips.some(({ status }) => status === 'fulfilled'))
    t.ok(clips.some(({ status }) => status === 'rejected'))
    stream.stop('api')
    await run(5)
    const later = createArchive()
    t.strictSame(await clipOf(later, { run: stream.run }), clip)
    await t.rejects(clipOf(later, {}), { code: 'ARCHIVE_NOT_FOUND' })
    await t.rejects(clipOf(later, { run: '20250101T000000Z-e' }), { code: 'ARCHIVE_NOT_FOUND' })
    store.fails = () => true
    await t.rejects(clipOf(later, { run: stream.run }), { code: 'ARCHIVE_UNAVAILABLE' })
  },
)

t.test('another process has a record of what the index lacked', async (t) => {
  const { begin, connect, run, store, takeOver } = setUp()
  const { stream } = begin()
  connect(stream)
  await run(33)
  store.fails = (key) => key.endsWith('index.json')
  await run(40)
  store.fails = () => false
  const { stream: next } = takeOver(stream)
  await run(4)
  connect(next)
  await run(20)
  next.stop('api')
  await run(5)
  const listed = ['cmaf-video-1.m3u8', 'cmaf-audio-1.m3u8'].flatMap((name) =>
    uris(store.text(name).replaceAll(/#EXT-X-GAP\n(#.*\n)*.*\n/g, '')),
  )
  t.same(
    [...store.files.keys()]
      .filter((key) => key.endsWith('.m4s'))
      .map((key) => key.split('/')[2]!)
      .filter((uri) => !listed.includes(uri)),
    [],
    'all that is stored is listed',
  )
})

t.test('a stream that stops before its first segment has no archive', async (t) => {
  const { begin, connect, run, events } = setUp()
  const { stream, archive } = begin()
  const encoder = connect(stream)
  const { publication } = encoder
  // Tables alone: nothing of its media arrives.
  encoder.publication = { push: (payload: Buffer) => publication?.push(tablesIn(payload)) } as never
  await run(5)
  t.ok(archive.reportOf(stream), 'it has begun')
  stream.stop('api')
  await run(1)
  t.equal(archive.reportOf(stream), undefined)
  t.same(events, [])
})

t.test('playlists on their way take no memory from media', async (t) => {
  const { begin, connect, run, store } = setUp()
  const { stream, archive } = begin()
  const put = store.put.bind(store)
  store.put = async (object) =>
    object.key.endsWith('.m3u8') ? new Promise(() => undefined) : put(object)
  connect(stream)
  await run(31)
  t.equal(archive.stats.waitingBytes, 0)
})

t.test('what another process has stored is kept if it could never be read', async (t) => {
  const { begin, connect, run, store, takeOver } = setUp()
  const { stream } = begin()
  connect(stream)
  await run(33)
  const before = new Map(store.files)
  store.fails = () => true
  const { stream: next, archive } = takeOver(stream)
  connect(next)
  await run(12)
  next.stop('api')
  await run(605)
  store.fails = () => false
  await run(30)
  for (const [key, bytes] of before) t.ok(store.files.get(key)?.equals(bytes), key)
  t.not(archive.reportOf(next)?.state, 'COMPLETE')
})

t.test('a continued stream without rows goes on behind what is stored', async (t) => {
  const { begin, connect, run, store, takeOver } = setUp()
  const { stream } = begin()
  connect(stream)
  await run(33)
  const before = uris(store.text('cmaf-video-1.m3u8'))
  const { stream: next } = takeOver(stream, { rows: [] })
  connect(next)
  await run(20)
  next.stop('api')
  await run(5)
  const after = uris(store.text('cmaf-video-1.m3u8'))
  t.same(after.slice(0, before.length), before)
  t.ok(after.length > before.length + 10)
})

t.test('a stream that has left gives up what the store never takes', async (t) => {
  const { begin, connect, run, store } = setUp()
  const { stream, archive } = begin()
  connect(stream)
  await run(11)
  store.fails = () => true
  await run(5)
  stream.leave()
  await run(5)
  t.ok(archive.stats.waitingBytes > 0)
  await run(700)
  t.equal(archive.stats.waitingBytes, 0)
  t.equal(archive.reportOf(stream), undefined)
})

t.test('a store that is too slow is told once', async (t) => {
  const { begin, connect, run, store, events } = setUp({ maxBytes: 600_000 })
  const { stream } = begin()
  connect(stream)
  let requests = 0
  await run(11)
  store.fails = () => requests++ % 4 !== 0
  await run(120)
  t.equal(events.filter(({ type }) => type === 'failed').length, 1)
  t.ok(stream.report().warnings.some(({ code }) => code === 'ARCHIVE_GAPS'))
})

t.test(
  'an owner that does not know of the next one does not overwrite its playlists',
  async (t) => {
    const { begin, connect, run, store, events, continueElsewhere } = setUp()
    // Whatever the store knows.
    store.compares = false
    const { stream, archive } = begin()
    connect(stream)
    await run(33)
    const { stream: next, archive: nextArchive } = continueElsewhere(stream)
    connect(next)
    await run(30)
    next.stop('api')
    await run(5)
    t.match(nextArchive.reportOf(next), { state: 'COMPLETE' })
    const isOf = (name: string) => name.startsWith(FOLDER) && /m3u8|json/.test(name)
    const complete = [...store.files].filter(([name]) => isOf(name))
    await run(30)
    stream.stop('api')
    await run(30)
    for (const [name, bytes] of complete) t.ok(store.files.get(name)?.equals(bytes), name)
    t.match(archive.reportOf(stream), { state: 'FAILED' })
    t.match(
      events.filter(({ type }) => type === 'failed'),
      [{ reason: 'Another node goes on with it' }],
    )
  },
)

for (const name of ['index.json', 'cmaf-video-1.m3u8', 'master.m3u8'])
  t.test(`an owner that was paused while it stored ${name} overwrites nothing`, async (t) => {
    const { begin, connect, run, store, continueElsewhere } = setUp()
    const { stream, archive } = begin()
    connect(stream)
    await run(33)
    const put = store.put.bind(store)
    const held: (() => void)[] = []
    store.put = async (object, options) => {
      if (held.length === 0 && object.key.endsWith(name))
        await new Promise<void>((resolve) => held.push(resolve))
      return put(object, options)
    }
    while (held.length === 0) await run(1)
    const { stream: next, archive: nextArchive } = continueElsewhere(stream)
    connect(next)
    await run(30)
    next.stop('api')
    await run(5)
    t.match(nextArchive.reportOf(next), { state: 'COMPLETE' })
    const complete = [...store.files].filter(([key]) => /m3u8|json/.test(key))
    for (const goOn of held) goOn()
    await run(10)
    stream.stop('api')
    await run(30)
    for (const [key, bytes] of complete) t.ok(store.files.get(key)?.equals(bytes), key)
    t.match(archive.reportOf(stream), { state: 'FAILED' })
    t.equal(archive.stats.taken, 1)
    t.equal(nextArchive.stats.taken, 0)
  })

t.test(
  'of two owners that go on with the same index, the first to store its own does',
  async (t) => {
    const { begin, connect, run, store, continueElsewhere } = setUp()
    const { stream } = begin()
    connect(stream)
    await run(33)
    const owners = ['f', 'g'].map((epoch) => continueElsewhere(stream, { epoch }))
    stream.leave()
    for (const owner of owners) connect(owner.stream)
    await run(30)
    for (const owner of owners) owner.stream.stop('api')
    await run(5)
    const states = owners.map((owner) => owner.archive.reportOf(owner.stream)?.state)
    t.same(new Set(states), new Set(['COMPLETE', 'FAILED']))
    const epoch = states[0] === 'COMPLETE' ? 'f' : 'g'
    t.match(JSON.parse(store.text('index.json')), { writer: epoch, state: 'COMPLETE' })
    const listed = uris(store.text('cmaf-video-1.m3u8').replaceAll(/#EXT-X-GAP\n(#.*\n)*.*\n/g, ''))
    t.same([...new Set(listed.map((uri) => uri.split('-')[0]))], ['e', epoch])
    t.same(
      uris(store.text('cmaf-video-1.m3u8')).map((uri) => Number(/\d+(?=\.m4s)/.exec(uri)![0])),
      Array.from({ length: uris(store.text('cmaf-video-1.m3u8')).length }, (_, index) => index),
    )
  },
)

for (const [earlier, order] of ['first', 'last'].entries())
  t.test(`an earlier owner that stores its index ${order} does not stop a later one`, async (t) => {
    const { begin, connect, run, store, continueElsewhere } = setUp()
    const { stream } = begin()
    connect(stream)
    await run(33)
    const owners = ['f', 'g'].map((epoch, index) =>
      continueElsewhere(stream, { epoch, fence: index === earlier ? 2 : 3 }),
    )
    stream.leave()
    for (const owner of owners) connect(owner.stream)
    await run(30)
    const states = owners.map((owner) => owner.archive.reportOf(owner.stream)?.state)
    const later = 1 - earlier
    t.match([states[earlier], states[later]], ['FAILED', 'RUNNING'])
    t.match(JSON.parse(store.text('index.json')), { fence: 3, writer: owners[later]!.stream.epoch })
  })

t.test('goes on in another folder when the playlists are long', async (t) => {
  const { begin, connect, run, store, events } = setUp({ fullBytes: 3000, dvrSec: 600 })
  const { stream, archive } = begin()
  const encoder = connect(stream)
  await run(40)
  encoder.closed = true
  connect(stream)
  await run(20)
  const { folders } = store
  t.ok(folders.length > 2)
  t.same(folders.slice(0, 2), [FOLDER, `${FOLDER}-2`])
  t.match(archive.reportOf(stream), { state: 'RUNNING', run: folders.at(-1)!.slice(7) })
  const [first, second] = folders.map((folder) => JSON.parse(store.text('index.json', folder)))
  const [begins] = uris(store.text('cmaf-video-1.m3u8', folders[1]))
  t.match(first, { state: 'COMPLETE', next: { run: folders[1]!.slice(7) } })
  t.match(begins, new RegExp(`-${first.next.media_sequence}\\.m4s$`))
  t.equal(second.start, first.end)
  const window = stream.files.get('dvr-cmaf-video-1.m3u8')!.chunks.join('')
  t.notMatch(window, '#EXT-X-ENDLIST')
  t.match(window, `\n${uris(store.text('cmaf-video-1.m3u8', folders.at(-1)))[0]}\n`)
  stream.stop('api')
  await run(5)
  t.equal(events.filter(({ type }) => type === 'completed').length, folders.length)
  const clip = await archive.clip({
    ...{ streamId: 'studio', run: first.run },
    ...{ from: new Date(WALL_MS), to: new Date(WALL_MS + 5000) },
  })
  t.match(clip.url, `${FOLDER}/clip-`)
})
