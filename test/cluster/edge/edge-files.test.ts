/**
 * Requests of an edge for the parts that the next version of a playlist names.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createMediaCache, EdgeFiles } from '../../../src/cluster/edge/edge-files.ts'
import type { AskOwner, OwnerResponse } from '../../../src/cluster/edge/stream-origin.ts'
import { TokenBucket } from '../../../src/timing/token-bucket.ts'
import { until } from '../../support/until.ts'

const PLAYLIST = 'playlist.m3u8'

/** @param part  only part of the playlist, whose target duration of an hour lets it hang for as long */
function playlistWith(part: string): OwnerResponse {
  const text = `#EXTM3U\n#EXT-X-TARGETDURATION:3600\n#EXT-X-PART:DURATION=1,URI="${part}"\n`
  const headers = { 'content-type': 'application/vnd.apple.mpegurl', etag: `"${part}"` }
  return { status: 200, headers, bytes: Buffer.from(text), fence: 1 }
}

t.test('a version waits for its part though no viewer waits for either', async (t) => {
  /** Requests that the origin has yet to answer. */
  const open = new Map<string, { answer: (response: OwnerResponse) => void }>()
  const ask: AskOwner = (file, { signal }) =>
    new Promise((resolve, reject) => {
      open.set(file, { answer: resolve })
      signal?.addEventListener('abort', () => {
        open.delete(file)
        reject(new Error('the edge has ended the request'))
      })
    })
  const answer = async (file: string, response: OwnerResponse) => {
    await until(`a request for ${file}`, () => open.has(file))
    open.get(file)!.answer(response)
    open.delete(file)
  }
  const media = { 'content-type': 'video/mp2t', etag: '"1"', 'cache-control': 'max-age=3600' }
  const part = { status: 200, headers: media, bytes: Buffer.from('part'), fence: 1 }
  const files = new EdgeFiles({
    ...{ ask, media: createMediaCache(1000), name: 'demo/', unlisted: new TokenBucket(10, 0) },
    ...{ clock: { nowUs: () => 0 }, keep: () => true },
  })
  t.teardown(() => files.close())
  const shown = () => files.get(PLAYLIST)?.version
  files.wait(PLAYLIST, {}, () => undefined)
  await answer(PLAYLIST, playlistWith('a.ts'))
  await until('the first version', () => shown() === 'a.ts')
  files.get('a.ts')
  await answer(PLAYLIST, playlistWith('b.ts'))
  await until('the request for its part', () => open.has('b.ts'))
  for (let second = 0; second < 5; second++) {
    files.tick()
    await nextTurn()
  }
  t.strictSame([[...open.keys()], shown()], [['b.ts'], 'a.ts'])
  await answer('b.ts', part)
  await until('the second version', () => shown() === 'b.ts')
  t.ok(files.get('b.ts'))
})
