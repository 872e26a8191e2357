/**
 * Reuse of segment memory: a viewer who still reads a segment never receives bytes of another.
 */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { FileLoan } from '../../src/hls/store/file-store.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { playback } from '../../src/playback/fastify-plugin.ts'
import { readDatagrams } from '../../src/cli/publisher/paced-file.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { until } from '../support/until.ts'
import { segmentUris } from '../support/viewer.ts'
import { largeVideo } from './attacks/large-streams.ts'

/** More than the kernel keeps for a connection: 10 of 15 MB wait in the process. */
const MBPS = 120

async function setUp(t: Test) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => nowUs / 1000 }
  const cache = new SegmentCache({ maxBytes: 64 * 1024 * 1024 })
  const stream = new LiveStream('studio', {
    ...{ clock, cache, epoch: 'e', segmentSec: 1, maxSegmentSec: 4, playlistSegments: 3 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  const app = fastify()
  const loans = { begun: 0, ended: 0 }
  const lend = (name: string): FileLoan | undefined => {
    const loan = stream.files.lend(name)
    if (loan?.end === undefined) return loan
    loans.begun++
    return { ...loan, end: () => (loans.ended++, loan.end!()) }
  }
  const source = {
    findStream: () => ({
      status: stream.status,
      live: stream.live,
      files: { get: lendNothing, lend },
    }),
  }
  await app.register(playback, { prefix: '/video', source })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo

  const publication = stream.publish({
    ...{ lastPacketUs: 0, report: () => PUBLISHER_REPORT, close: () => undefined },
  })
  const datagrams = readDatagrams(largeVideo(MBPS), { loop: true })
  /** Media of `segments` segments. */
  const feed = async (segments: number) => {
    const { segments: before } = stream.report().totals
    for (;;) {
      const { value } = await datagrams.next()
      for (const { payload, dueUs } of value ?? []) {
        nowUs = dueUs
        publication.push(payload)
      }
      if (stream.report().totals.segments >= before + segments) return
    }
  }
  const newest = () =>
    segmentUris(stream.files.get('playlist.m3u8')?.chunks.join('') ?? '').at(-1) ?? ''
  return { stream, loans, feed, newest, url: `http://127.0.0.1:${port}/video/studio` }
}

const lendNothing = (): never => {
  throw new Error('a file that can be lent is not read in another way')
}

/** A copy, which keeps no memory of the segment in use. */
function copyOf(stream: LiveStream, name: string): Buffer {
  const loan = stream.files.lend(name)!
  const copy = Buffer.concat(loan.file.chunks)
  loan.end?.()
  return copy
}

t.test('a slow reader gets the requested segment, whatever is written meanwhile', async (t) => {
  const { stream, loans, feed, newest, url } = await setUp(t)
  await feed(3)
  const name = newest()
  const expected = copyOf(stream, name)
  const request = get(`${url}/${name}`)
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  reply.pause()
  for (let each = 0; each < 12; each++) {
    await feed(1)
    await turn()
  }
  t.equal(stream.files.lend(name), undefined, 'the cache has released it')
  const chunks: Buffer[] = []
  for await (const chunk of reply) chunks.push(chunk as Buffer)
  t.ok(Buffer.concat(chunks).equals(expected))
  await until('the end of the loan', () => loans.ended === 1)
})

t.test('the loan of a reader that hangs up ends', async (t) => {
  const { loans, feed, newest, url } = await setUp(t)
  await feed(3)
  const request = get(`${url}/${newest()}`)
  await once(request, 'response')
  await feed(12)
  t.strictSame(loans, { begun: 1, ended: 0 })
  request.destroy()
  await until('the end of the loan', () => loans.ended === 1)
})

t.test('listeners keep the segments they were given', async (t) => {
  const { stream, feed } = await setUp(t)
  await feed(2)
  const kept: { segment: Segment; copy: Buffer }[] = []
  const keep = (segment: Segment) => kept.push({ segment, copy: Buffer.concat(segment.chunks) })
  stream.on('segment', keep)
  await feed(2)
  stream.off('segment', keep)
  await feed(12)
  t.equal(kept.length, 2)
  for (const { segment, copy } of kept) t.ok(segment.bytes.equals(copy), segment.uri)
})

t.test('a file that was read by name does not change', async (t) => {
  const { stream, feed, newest } = await setUp(t)
  await feed(3)
  const file = stream.files.get(newest())!
  const copy = Buffer.concat(file.chunks)
  await feed(12)
  t.ok(Buffer.concat(file.chunks).equals(copy))
})
