/** Decisions about the units of a reference track, forward only. */
import * as fc from 'fast-check'
import t from 'tap'
import type { CutDecision } from '../../../src/hls/cut/cut-decision.ts'
import { CutPlanner } from '../../../src/hls/cut/cut-planner.ts'
import type { SegmentEnd, SegmentPlan } from '../../../src/hls/cut/segment-plan.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { VIDEO } from '../source.ts'

const SEC = 90_000
const START_TICKS = 10 * SEC

function frame(ticks: number, key = false, sizeBytes = 188): PesUnit {
  return {
    ...{ track: VIDEO, chunks: [], sizeBytes, ptsTicks: ticks, dtsTicks: ticks, damaged: false },
    ...{ randomAccess: key, newParameters: false, inBandSets: false },
    ...{ gradualRefresh: false, decodableLeading: false },
    ...{ payload: Buffer.alloc(0), startsFrame: true },
  }
}

interface Planned extends SegmentPlan {
  readonly end: SegmentEnd
}

function segmentsOf(decisions: readonly CutDecision[]): Planned[] {
  const segments: Planned[] = []
  let open: SegmentPlan | undefined
  for (const decision of decisions) {
    if (decision.type === 'start') {
      if (open !== undefined) throw new Error('started within another')
      open = decision.plan
    }
    if (decision.type !== 'end') continue
    if (open === undefined) throw new Error('ended before it started')
    segments.push({ ...open, end: decision.end })
    open = undefined
  }
  return segments
}

interface Settings {
  readonly segmentSec?: number
  readonly maxSec?: number
  readonly partSec?: number | undefined
}

function plan(frames: readonly PesUnit[], settings: Settings = {}) {
  const { segmentSec = 2, maxSec = 10, partSec } = settings
  const limits = { maxSegmentSec: maxSec, maxSegmentBytes: 1e9 }
  const planner = new CutPlanner({ segmentSec, partSec, ...limits })
  const decisions = frames.flatMap((unit) => planner.push(unit, 0, 0))
  decisions.push(...planner.endClock())
  decisions.push(...planner.end())
  const targets = decisions.filter((decision) => decision.type === 'target')
  return { segments: segmentsOf(decisions), targets, planner, decisions }
}

/** Frames of 25 Hz with key frames at these seconds, up to the last. */
function withKeysAt(...seconds: number[]): PesUnit[] {
  const keys = new Set(seconds.map((sec) => Math.round(sec * 25)))
  const count = Math.round(seconds.at(-1)! * 25) + 1
  return Array.from({ length: count }, (_, n) => frame(START_TICKS + (n * SEC) / 25, keys.has(n)))
}

const durations = (segments: readonly Planned[]) =>
  segments.map(({ end }) => Math.round(end.durationSec * 100) / 100)

t.test('a key frame ends a segment of 0.9 times segmentSec, a shorter one goes on', async (t) => {
  t.same(durations(plan(withKeysAt(0, 1.76, 3.56)).segments), [3.56, 0.04])
  t.same(durations(plan(withKeysAt(0, 1.8, 3.6)).segments), [1.8, 1.8, 0.04])
})

t.test(
  'a key frame ends a shorter segment if a GOP of usual length would exceed the limit',
  async (t) => {
    const { segments } = plan(withKeysAt(0, 1.4, 2.8, 4.2), { maxSec: 2 })
    t.same(durations(segments), [1.4, 1.4, 1.4, 0.04])
    t.ok(segments.every(({ keyTicks, startTicks }) => keyTicks === startTicks))
  },
)

t.test('the longest of three GOPs counts, and is forgotten after them', async (t) => {
  const keys = [0, 2, 4, 6, 8.4, 9, 9.6, 10.2, 10.8, 11.4, 12]
  // 0.6 s and 2.4 s would be 3 s: over the limit of 2.49 s until three short GOPs have passed.
  t.same(durations(plan(withKeysAt(...keys)).segments), [2, 2, 2, 2.4, 0.6, 0.6, 1.8, 0.64])
})

t.test('without a key frame a segment ends with the last frame before the limit', async (t) => {
  const { segments, decisions, planner } = plan(withKeysAt(0, 2, 4, 6, 12))
  t.same(durations(segments), [2, 2, 2, 2.48, 2.48, 1.04, 0.04])
  t.same(
    segments.map(({ keyTicks }) => keyTicks !== undefined),
    [true, true, true, true, false, false, true],
  )
  t.equal(planner.stats.forcedCuts, 2)
  const facts = decisions.flatMap((decision) => (decision.type === 'fact' ? [decision.fact] : []))
  t.match(facts[0], { code: 'GOP_TOO_LONG', targetSec: 2 })
})

t.test(
  'with parts, the first segment fixes PART-TARGET, the second EXT-X-TARGETDURATION',
  async (t) => {
    const { decisions, segments, targets } = plan(withKeysAt(0, 2, 10.3, 18.6), { partSec: 0.2 })
    const types = decisions.flatMap(({ type }) => (type === 'fact' ? [] : type))
    t.same(types.slice(0, 4), ['start', 'end', 'start', 'part'])
    t.same(types.slice(types.indexOf('target') - 1).slice(0, 3), ['end', 'target', 'start'])
    t.equal(types.slice(0, types.indexOf('target')).filter((type) => type === 'end').length, 2)
    t.match(targets, [{ targetSec: 8, partTargetSec: 0.208 }])
    t.same(durations(segments), [2, 8.32, 8.28, 0.04])
    const parts = decisions.flatMap((decision) => (decision.type === 'part' ? decision.end : []))
    t.ok(parts.every(({ durationSec, maxSec }) => durationSec <= maxSec && maxSec === 0.208))
  },
)

t.test('reports a GOP of over 4 s while it lasts and at its end', async (t) => {
  const reported = (frames: readonly PesUnit[], settings: Settings = {}) =>
    plan(frames, settings).decisions.flatMap((decision) => {
      if (decision.type !== 'fact' || decision.fact.code !== 'GOP_TOO_LONG') return []
      const { gopSec, limitSec } = decision.fact
      return [[Math.round(gopSec * 100) / 100, limitSec]]
    })
  t.same(reported(withKeysAt(0, 4, 8, 12)), [])
  t.same(reported(withKeysAt(0, 8.4, 16.8)), [
    [4.04, 4],
    [8.4, 4],
    [4.04, 4],
    [8.4, 4],
  ])
  t.same(reported(withKeysAt(0, 6, 12), { segmentSec: 6 }), [], 'of segments of 6 s')
})

t.test('a segment that a gap would make too long ends with its media', async (t) => {
  const frames = withKeysAt(0, 2, 4, 6, 8, 10).filter(({ ptsTicks }) => {
    const sec = (ptsTicks - START_TICKS) / SEC
    return sec < 7 || sec >= 8.6
  })
  const { segments } = plan(frames)
  t.same(durations(segments), [2, 2, 2, 1, 2.48, 0.52, 0.04])
  t.equal(segments[4]!.startTicks, START_TICKS + 7 * SEC, 'the next one goes on from there')
})

t.test('decisions alternate and no segment exceeds its target, for arbitrary units', async (t) => {
  const unit = fc.record({
    step: fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(3000, 3600, 1500) },
      { weight: 3, arbitrary: fc.integer({ min: -SEC, max: 3 * SEC }) },
      { weight: 1, arbitrary: fc.integer({ min: -(2 ** 33), max: 2 ** 33 }) },
    ),
    key: fc.integer({ min: 0, max: 30 }).map((value) => value === 0),
    startsFrame: fc.integer({ min: 0, max: 9 }).map((value) => value > 0),
    reorderTicks: fc.constantFrom(0, 0, 6000),
  })
  const settings = fc.record({
    segmentSec: fc.double({ min: 0.1, max: 4, noNaN: true }),
    maxSec: fc.integer({ min: 4, max: 6 }),
    partSec: fc.constantFrom(undefined, 0.2),
  })
  fc.assert(
    fc.property(settings, fc.array(unit, { maxLength: 400, size: 'max' }), (chosen, steps) => {
      let ticks = START_TICKS
      const frames = steps.map(({ step, key, reorderTicks, startsFrame }) => {
        ticks += step
        return { ...frame(ticks, key), ptsTicks: ticks + reorderTicks, startsFrame }
      })
      const { segments, targets, decisions } = plan(frames, chosen)
      if (targets.length > 1) throw new Error('two targets')
      const { targetSec, partTargetSec = 0 } = targets[0] ?? {}
      for (const decision of decisions)
        if (decision.type === 'part' && decision.end.durationSec > partTargetSec + 1e-5)
          throw new Error('part too long')
      for (const [
        index,
        { startTicks, startsTimeline, end, mediaSequence },
      ] of segments.entries()) {
        if (mediaSequence !== index) throw new Error('numbers have a gap')
        if (Math.round(end.durationSec) > (targetSec ?? 0)) throw new Error('too long')
        const before = segments[index - 1]
        if (before !== undefined && !startsTimeline && before.end.endTicks !== startTicks) {
          throw new Error('does not start where the one before ended')
        }
      }
    }),
    { numRuns: 300 },
  )
  t.pass('for every seed')
})
