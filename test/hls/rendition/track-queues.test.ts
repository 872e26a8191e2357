import t from 'tap'
import { TrackQueue } from '../../../src/hls/rendition/track-queues.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import {
  CLIP_START_TICKS as START,
  audioUnit,
  AUDIO_UNIT_TICKS,
  audioUnits,
  videoUnit,
} from '../source.ts'

const SEC = 90_000
const MIB = 1024 * 1024

function takeAll(queue: TrackQueue, untilTicks: number, timelineStartTicks = START): number[] {
  const taken: number[] = []
  for (;;) {
    const queued = queue.take({ timelineStartTicks, untilTicks })
    if (queued === undefined) return taken
    taken.push(queued.unit.ptsTicks)
  }
}

function pushAll(queue: TrackQueue, units: readonly PesUnit[]): void {
  for (const unit of units) {
    queue.push(unit)
    queue.keep(unit)
  }
}

const audioQueue = (maxBytes = MIB, memory = { bytes: 0 }) =>
  new TrackQueue({ ...{ kind: 'audio', reference: false, maxBytes }, memory })
const videoQueue = () =>
  new TrackQueue({ ...{ kind: 'video', reference: false, maxBytes: MIB }, memory: { bytes: 0 } })
const ptsOf = (units: readonly PesUnit[]) => units.map(({ ptsTicks }) => ptsTicks)

t.test('audio ahead of the reference track waits, late audio is taken at once', async (t) => {
  const queue = audioQueue()
  const units = audioUnits(START, 20)
  pushAll(queue, units)
  t.same(takeAll(queue, START + SEC), ptsOf(units.slice(0, 6)))
  t.same(takeAll(queue, START + 60 * SEC), ptsOf(units.slice(6)))
  pushAll(queue, [audioUnit(START + 19.5 * AUDIO_UNIT_TICKS)])
  t.equal(takeAll(queue, START + 60 * SEC).length, 1)
  t.equal(queue.dropped, 0)
})

t.test('a copy takes the place of a unit that waits', async (t) => {
  const queue = audioQueue()
  const [first, second] = audioUnits(START, 2)
  queue.push(first!)
  t.equal(queue.take({ timelineStartTicks: START, untilTicks: START })!.unit, first)
  t.notOk(queue.isHolding(first!))
  queue.push(second!)
  t.ok(queue.isHolding(second!))
  const copy = { ...second! }
  queue.keep(copy)
  const window = { timelineStartTicks: START, untilTicks: START + AUDIO_UNIT_TICKS }
  t.equal(queue.take(window)!.unit, copy)
})

t.test('a unit that is out of order is dropped as soon as the next one is due', async (t) => {
  for (const strayTicks of [START + 1000 * SEC, START + 5 * SEC, START - 5 * SEC]) {
    const queue = audioQueue()
    pushAll(queue, [audioUnit(START), audioUnit(strayTicks), audioUnit(START + AUDIO_UNIT_TICKS)])
    t.same(takeAll(queue, START + SEC), [START, START + AUDIO_UNIT_TICKS])
    t.equal(queue.dropped, 1)
  }
})

t.test('a track that jumps waits for the reference track to do the same', async (t) => {
  for (const jumpSec of [1000, -1000, -5]) {
    const queue = audioQueue()
    const jumpTicks = START + jumpSec * SEC
    pushAll(queue, [...audioUnits(START, 6), ...audioUnits(jumpTicks, 6)])
    t.equal(takeAll(queue, START + 2 * SEC).length, 6, `${jumpSec} s`)
    t.ok(queue.isPast({ timelineStartTicks: START, untilTicks: START + 2 * SEC }))
    queue.startTimeline()
    t.equal(takeAll(queue, jumpTicks + 2 * SEC, jumpTicks).length, 6)
    t.equal(queue.dropped, 0)
  }
})

t.test('a track that steps back alone is waited for during 5 s, then placed late', async (t) => {
  const queue = audioQueue()
  pushAll(queue, audioUnits(START, 60))
  t.equal(takeAll(queue, START + 10.5 * SEC).length, 60)
  pushAll(queue, audioUnits(START + 4 * SEC, 29))
  t.same(takeAll(queue, START + 13 * SEC), [])
  pushAll(queue, audioUnits(START + 4 * SEC + 29 * AUDIO_UNIT_TICKS, 2))
  t.equal(takeAll(queue, START + 13 * SEC).length, 31)
})

t.test('a track 1000 s ahead is queued within bounds, and reported as out of step', async (t) => {
  const memory = { bytes: 0 }
  const queue = audioQueue(MIB, memory)
  for (let n = 0; n < 400; n++) {
    const unit = audioUnit(START + 1000 * SEC + n * AUDIO_UNIT_TICKS)
    queue.push(unit)
    t.same(takeAll(queue, START + n * AUDIO_UNIT_TICKS), [])
    queue.keep(unit)
  }
  t.ok(memory.bytes < MIB / 2, '20 s of audio wait')
  t.ok(queue.outOfStep)
  queue.clear()
  t.equal(memory.bytes, 0)
})

t.test('a queue holds no more memory than it may, whatever the size of its units', async (t) => {
  const memory = { bytes: 0 }
  const queue = audioQueue(50_000, memory)
  pushAll(queue, audioUnits(START, 500))
  t.ok(memory.bytes > 40_000 && memory.bytes <= 50_000, `${memory.bytes}`)
  const held = takeAll(queue, START + 500 * AUDIO_UNIT_TICKS).length
  t.ok(held < 50_000 / 1024, `${held} units: each has objects and buffers`)
  t.equal(queue.dropped, 500 - held)
  t.equal(memory.bytes, 0)
})

t.test('a video begins with a key frame, and again after a loss', async (t) => {
  const queue = videoQueue()
  const frames = Array.from({ length: 40 }, (_, n) =>
    videoUnit(START + n * 3000, { key: n % 10 === 5 }),
  )
  pushAll(queue, frames.slice(0, 20))
  t.same(takeAll(queue, START + SEC), ptsOf(frames.slice(5, 20)))
  queue.interrupt()
  pushAll(queue, frames.slice(20))
  t.same(takeAll(queue, START + 2 * SEC), ptsOf(frames.slice(25)))
  t.equal(queue.dropped, 10)
})

t.test('a key frame waits until no boundary can be meant for it', async (t) => {
  const queue = videoQueue()
  pushAll(queue, [videoUnit(START, { key: true }), videoUnit(START + 3000)])
  t.same(takeAll(queue, START + 4000), [], 'less than 50 ms later one may be')
  t.same(takeAll(queue, START + 4500), [START, START + 3000])
})
