import t from 'tap'
import { PublisherLimits } from '../../src/ingest/publisher-limits.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'

const streamOf = (encoder?: object) =>
  ({ encoderOf: () => encoder, policy: {} }) as unknown as LiveStream
const SEC = 1_000_000

t.test('lets two callers wait for a stream, and refuses a third at once', async (t) => {
  const limits = new PublisherLimits(10, () => false)
  const [studio, other] = [streamOf(), streamOf()]
  const ends: (() => void)[] = []
  const wait = (stream: LiveStream) =>
    limits.wait(stream, 'main', 0, () => new Promise((resolve) => ends.push(resolve)))
  const first = wait(studio)
  const second = wait(studio)
  await t.rejects(wait(studio), { code: 'STREAM_BUSY', rejectCode: 2409 })
  const beside = wait(other)
  t.equal(ends.length, 3, 'another stream has places of its own')
  ends[0]!()
  await first
  const third = wait(studio)
  t.equal(ends.length, 4)
  for (const end of ends) end()
  await Promise.all([second, third, beside])
})

t.test('the backup encoder has waiting places and a rate of its own', async (t) => {
  const limits = new PublisherLimits(10, () => false)
  const studio = streamOf()
  const forever = () => new Promise<void>(() => {})
  for (let i = 0; i < 2; i++) void limits.wait(studio, 'backup', 0, forever)
  for (let i = 0; i < 30; i++) limits.countConnection(studio, 'backup', 0)
  await t.rejects(limits.wait(studio, 'backup', 0, forever), { code: 'STREAM_BUSY' })
  t.throws(() => limits.countConnection(studio, 'backup', 0), { code: 'TOO_MANY_CONNECTIONS' })
  await limits.wait(studio, 'main', 0, () => Promise.resolve())
  limits.countConnection(studio, 'main', 0)
})

t.test('frees a waiting place when waiting ends in an error', async (t) => {
  const limits = new PublisherLimits(10, () => false)
  const studio = streamOf()
  for (let caller = 0; caller < 5; caller++) {
    const failing = limits.wait(studio, 'main', 0, () => Promise.reject(new Error('gone')))
    await t.rejects(failing, /gone/)
  }
})

t.test('allows 30 connections of a stream at once, then one every two seconds', async (t) => {
  const limits = new PublisherLimits(10, () => false)
  const [studio, other] = [streamOf(), streamOf()]
  for (let i = 0; i < 30; i++) limits.countConnection(studio, 'main', 0)
  const refused = { code: 'TOO_MANY_CONNECTIONS', rejectCode: 2402 }
  t.throws(() => limits.countConnection(studio, 'main', 1.9 * SEC), refused)
  t.throws(() => limits.checkConnections(studio, 'main', 1.9 * SEC), refused)
  for (let i = 0; i < 2; i++) limits.checkConnections(studio, 'main', 2 * SEC)
  limits.countConnection(studio, 'main', 2 * SEC)
  t.throws(() => limits.countConnection(studio, 'main', 2 * SEC), refused)
  limits.countConnection(other, 'main', 2 * SEC)
})

t.test('limits publishers, except one that replaces another', async (t) => {
  const limits = new PublisherLimits(2, () => false)
  limits.addPublisher()
  limits.checkRoom(streamOf(), 'main', 0)
  limits.addPublisher()
  t.throws(() => limits.checkRoom(streamOf(), 'main', 0), {
    code: 'TOO_MANY_PUBLISHERS',
    rejectCode: 1003,
  })
  limits.checkRoom(streamOf({}), 'main', 0)
  limits.removePublisher()
  limits.checkRoom(streamOf(), 'main', 0)
})

t.test(
  'refuses encoders while the process is overloaded, except one that replaces another',
  async (t) => {
    let overloaded = true
    const limits = new PublisherLimits(10, () => overloaded)
    t.throws(() => limits.checkRoom(streamOf(), 'main', 0), {
      code: 'OVERLOADED',
      rejectCode: 2402,
    })
    limits.checkRoom(streamOf({}), 'main', 0)
    overloaded = false
    limits.checkRoom(streamOf(), 'main', 0)
  },
)

t.test('refuses encoders of a banned stream until its ban is over', async (t) => {
  const limits = new PublisherLimits(10, () => false)
  const stream = Object.assign(streamOf({}), { policy: { bannedUntilUs: 5 * SEC } })
  const refused = { code: 'STREAM_BANNED', rejectCode: 2403 }
  t.throws(() => limits.checkRoom(stream, 'main', 4.9 * SEC), refused)
  limits.checkRoom(stream, 'main', 5 * SEC)
})

t.test('allows lines of an encoder 8 times as often, unless overloaded or banned', async (t) => {
  let isOverloaded = false
  const limits = new PublisherLimits(1, () => isOverloaded)
  const policy: { bannedUntilUs?: number } = {}
  const studio = { encoderOf: () => ({}), policy } as unknown as LiveStream
  for (let i = 0; i < 30; i++) limits.countConnection(studio, 'main', 0)
  for (let i = 0; i < 240; i++) limits.countLine(studio, 'main', 0)
  const refused = { code: 'TOO_MANY_CONNECTIONS', rejectCode: 2402, message: /^lines join/ }
  t.throws(() => limits.countLine(studio, 'main', 0.2 * SEC), refused)
  // Eight lines that fail every two seconds, for ten minutes.
  for (let second = 2; second < 600; second += 2)
    for (let line = 1; line <= 8; line++) limits.countLine(studio, 'main', second * SEC)
  limits.countLine(studio, 'backup', 600 * SEC)
  isOverloaded = true
  t.throws(() => limits.countLine(studio, 'main', 600 * SEC), { code: 'OVERLOADED' })
  isOverloaded = false
  policy.bannedUntilUs = 601 * SEC
  t.throws(() => limits.countLine(studio, 'main', 600 * SEC), { code: 'STREAM_BANNED' })
})
