/**
 * When a copy of a playlist asks its origin again.
 */
import { EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { FollowedPlaylist } from '../../../src/cluster/edge/followed-playlist.ts'
import type { OwnerResponse } from '../../../src/cluster/edge/stream-origin.ts'
import { until } from '../../support/until.ts'

function reply(status: number, etag?: string): OwnerResponse {
  const bytes = Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:1\n')
  return { status, headers: etag === undefined ? {} : { etag }, bytes, fence: 1 }
}

/** Follows an origin that answers at once, with the last of the replies for ever. @returns the ETags that it was sent */
function follow(t: Test, replies: readonly OwnerResponse[]): (string | undefined)[] {
  const asked: (string | undefined)[] = []
  const playlist = new FollowedPlaylist({
    ask: async ({ etag }) => {
      asked.push(etag)
      await nextTurn()
      return replies[Math.min(asked.length, replies.length) - 1]!
    },
    // No pause is over while the clock stands still.
    clock: { nowUs: () => 0 },
    onChange: () => undefined,
  })
  t.teardown(() => playlist.stop())
  return asked
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

t.test('pauses when an origin that ignores If-None-Match sends what is known', async (t) => {
  const asked = follow(t, [reply(200, '"1"')])
  await turns(100)
  t.strictSame(asked, [undefined, '"1"'])
})

t.test('asks for the version after a new one at once', async (t) => {
  const asked = follow(t, [reply(200, '"1"'), reply(200, '"2"'), reply(304)])
  await turns(100)
  t.strictSame(asked, [undefined, '"1"', '"2"'])
})

t.test('asks without a pause after the first success that follows a failure', async (t) => {
  const asked = follow(t, [reply(200, '"1"'), reply(503), reply(200, '"1"'), reply(304)])
  await until('the success', () => asked.length >= 3)
  await turns(10)
  t.strictSame(asked, [undefined, '"1"', undefined, '"1"'])
})

t.test('a part that hangs holds a version up for a target duration', async (t) => {
  const bytes = (parts: readonly string[]) =>
    Buffer.from(
      `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${parts.map((uri) => `#EXT-X-PART:DURATION=1,URI="${uri}"\n`).join('')}`,
    )
  const versions = [['a.ts'], ['a.ts', 'b.ts']].map((parts, index) => ({
    ...reply(200, `"${index + 1}"`),
    bytes: bytes(parts),
  }))
  const fetched: (readonly string[])[] = []
  const readers = new EventEmitter()
  const playlist = new FollowedPlaylist({
    ask: async ({ etag, signal }) => {
      if (etag === undefined) return versions[0]!
      if (etag === '"1"') await once(readers, 'read')
      else await once(readers, 'never', { signal: signal! })
      return versions[1]!
    },
    clock: { nowUs: () => 0 },
    onChange: () => undefined,
    fetchParts: (names) => {
      fetched.push(names)
      return new Promise(() => undefined)
    },
  })
  t.teardown(() => playlist.stop())
  await until('the first version', () => playlist.file?.version === '1')
  playlist.noteRead('a.ts')
  readers.emit('read')
  await until('the second one', () => playlist.file?.version === '2')
  t.strictSame(fetched, [['b.ts']])
})

t.test('a version is read for its names once, however many are asked for', async (t) => {
  const text = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:URI="a.mp4"\n#EXTINF:1,\na.m4s\n'
  let reads = 0
  const bytes = Buffer.from(text)
  const read = (what: 'includes' | 'toString') => {
    const original = bytes[what].bind(bytes) as (...args: unknown[]) => never
    bytes[what] = (...args: unknown[]) => {
      reads++
      return original(...args)
    }
  }
  read('includes')
  read('toString')
  const playlist = new FollowedPlaylist({
    ask: async ({ etag, signal }) => {
      if (etag !== undefined) await once(new EventEmitter(), 'never', { signal: signal! })
      return { ...reply(200, '"1"'), bytes }
    },
    clock: { nowUs: () => 0 },
    onChange: () => undefined,
  })
  t.teardown(() => playlist.stop())
  await until('the playlist', () => playlist.file !== undefined)
  t.strictSame(
    ['a.mp4', 'a.m4s', 'a', '#EXTM3U', ''].map((name) => playlist.mentions(name)),
    [true, true, false, false, false],
  )
  const before = reads
  for (let index = 0; index < 100; index++) t.notOk(playlist.mentions(`guess-${index}.m4s`))
  t.equal(reads, before)
})

t.test('fetches a new init segment with the first part that needs it', async (t) => {
  const bytes = (...lines: string[]) =>
    Buffer.from(`#EXTM3U\n#EXT-X-TARGETDURATION:1\n${lines.join('\n')}\n`)
  const known = ['#EXT-X-MAP:URI="e-v1-a.mp4"', '#EXT-X-PART:DURATION=1,URI="e-v1-p1.m4s"']
  const next = ['#EXT-X-MAP:URI="e-v1-b.mp4"', '#EXT-X-PART:DURATION=1,URI="e-v1-p2.m4s"']
  const fetched: (readonly string[])[] = []
  const readers = new EventEmitter()
  const playlist = new FollowedPlaylist({
    ask: async ({ etag, signal }) => {
      if (etag === undefined) return { ...reply(200, '"1"'), bytes: bytes(...known) }
      if (etag === '"1"') await once(readers, 'read')
      else await once(readers, 'never', { signal: signal! })
      return { ...reply(200, '"2"'), bytes: bytes(...known, '#EXT-X-DISCONTINUITY', ...next) }
    },
    clock: { nowUs: () => 0 },
    onChange: () => undefined,
    fetchParts: async (names) => {
      fetched.push(names)
      return true
    },
  })
  t.teardown(() => playlist.stop())
  await until('the first version', () => playlist.file?.version === '1')
  t.ok(playlist.mentions('e-v1-a.mp4'))
  playlist.noteRead('e-v1-p1.m4s')
  readers.emit('read')
  await until('the second one', () => playlist.file?.version === '2')
  t.strictSame(fetched, [['e-v1-b.mp4', 'e-v1-p2.m4s']])
})
