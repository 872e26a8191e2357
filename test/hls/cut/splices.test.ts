/** SCTE-35 from the demuxer's outputs to cuts and date ranges; every version of every playlist is checked on the way. */
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import type { Segment } from '../../../src/hls/store/segment.ts'
import { Packager, type PackagerOutput } from '../../../src/hls/packager.ts'
import type { DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import { decodeSpliceInfo } from '../../../src/mpegts/psi/splice-info.ts'
import {
  spliceInsert,
  timeSignal,
  type SegmentationFields,
  type SpliceInsertFields,
} from '../../mpegts/splice-builder.ts'
import { checkPlaylists } from '../../support/check-playlists.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { AUDIO, audioUnits, program, programOf, unit, VIDEO, videoUnits } from '../source.ts'

const SEC = 90_000
const WALL_MS = Date.UTC(2026, 0, 1)

/** Time of the first video frame. Splice times are in seconds after it. */
const START_TICKS = 10 * SEC
const at = (sec: number) => START_TICKS + sec * SEC
/** Date as text, since `t.match` accepts any date for another. */
const dateOf = (sec: number) => new Date(WALL_MS + sec * 1000).toISOString()

type Step = DemuxerOutput | { readonly type: 'discontinuity' } | { readonly type: 'end' }

const splice = (section: Buffer): DemuxerOutput => ({
  type: 'splice',
  splice: decodeSpliceInfo(section)!,
})
const insert = (fields: SpliceInsertFields) => splice(spliceInsert(fields))
const signal = (ptsTicks: number | undefined, ...segmentations: SegmentationFields[]) =>
  splice(timeSignal(ptsTicks, segmentations))

/** Video frames of 0.1 s, a key frame each second, and splices, each announced before the frame of that second. */
function clip(seconds: number, splices: Record<number, DemuxerOutput[]> = {}, fromSec = 0): Step[] {
  const units = videoUnits({
    ...{ fromTicks: at(fromSec), frames: seconds * 10, framesPerGop: 10, frameTicks: SEC / 10 },
  })
  const announced = Object.entries(splices)
  return [
    program(programOf(VIDEO)),
    ...units.flatMap((value, index) => [
      ...announced.flatMap(([sec, outputs]) => (Number(sec) * 10 === index ? outputs : [])),
      unit(value),
    ]),
  ]
}

type DateRanges = NonNullable<ReturnType<typeof parseM3u8>['manifest']['dateRanges']>

interface Result {
  readonly segments: readonly Segment[]
  readonly durations: readonly number[]
  /** Codes of facts; `full` for splices without room in the playlist. */
  readonly facts: readonly string[]
  readonly missed: number
  /** Last version of the playlist as m3u8-parser reads it. */
  readonly dateRanges: DateRanges
  /** All versions of the playlist. */
  readonly playlists: readonly string[]
  /** Violations of the playlist rules. */
  readonly complaints: readonly string[]
}

function run(t: Test, steps: readonly Step[], playlistSegments = 100): Result {
  const result = simulate(steps, playlistSegments)
  t.same(result.complaints, [], 'every version of the playlist keeps the rules')
  return result
}

function simulate(steps: readonly Step[], playlistSegments: number): Result {
  const packager = new Packager({ epoch: 'e', segmentSec: 2, maxSegmentSec: 10 })
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments })
  const segments: Segment[] = []
  const facts: string[] = []
  const playlists: string[] = []
  const take = (outputs: readonly PackagerOutput[]) => {
    for (const output of outputs) {
      if (output.type === 'fact') facts.push(output.fact.code)
      if (output.type === 'date-range' && !presentation.addDateRange(output.dateRange)) {
        facts.push('full')
      }
      if (output.type === 'renditions') presentation.setRenditions(output.renditions)
      if (output.type === 'target') presentation.setTarget(output.targetSec)
      if (output.type !== 'segment') continue
      segments.push(output.segment)
      presentation.append(output.segment, 0)
    }
    const text = presentation.files.get('playlist.m3u8')?.chunks.join('')
    if (text !== undefined && text !== playlists.at(-1)) playlists.push(text)
  }
  for (const step of steps) {
    if (step.type === 'discontinuity' || step.type === 'end') take(packager[step.type]())
    else take(packager.push(step, WALL_MS))
  }
  const { manifest } = parseM3u8(playlists.at(-1) ?? '')
  return {
    ...{ segments, facts, playlists, missed: packager.stats.missedSplices },
    complaints: checkPlaylists(playlists),
    durations: segments.map(({ durationSec }) => durationSec),
    dateRanges: manifest.dateRanges ?? [],
  }
}

function matchRanges(t: Test, dateRanges: DateRanges, patterns: readonly object[]): void {
  t.equal(dateRanges.length, patterns.length)
  t.match(dateRanges, patterns)
}

const END: Step = { type: 'end' }

t.test('a break is cut where it begins and ends, and becomes one date range', async (t) => {
  const out = spliceInsert({
    ...{ eventId: 7, ptsTicks: at(5), break: { durationTicks: 4 * SEC, autoReturn: false } },
  })
  const into = spliceInsert({ eventId: 7, out: false, ptsTicks: at(9) })
  const { durations, dateRanges, playlists } = run(t, [
    ...clip(12, { 3: [splice(out)], 8: [splice(into)] }),
    END,
  ])
  t.same(durations, [2, 2, 1, 2, 2, 2, 1])
  matchRanges(t, dateRanges, [
    {
      id: `splice-7-${WALL_MS + 5000}`,
      startDate: dateOf(5),
      plannedDuration: 4,
      duration: 4,
      scte35Out: `0x${out.toString('hex').toUpperCase()}`,
      scte35In: `0x${into.toString('hex').toUpperCase()}`,
    },
  ])
  const withOut = playlists.find((text) => text.includes('SCTE35-OUT'))
  t.match(withOut, 'e-2.ts', 'announced with the last segment before it (4.4.5.1.1)')
  t.notMatch(withOut, 'e-3.ts')
  t.notMatch(withOut, 'DURATION=4.00000,DURATION', 'the end is not known yet')
  t.notMatch(withOut, ',DURATION=')
})

t.test('a splice between key frames is cut at the next one and dated as announced', async (t) => {
  const { durations, dateRanges } = run(t, [
    ...clip(8, { 2: [insert({ eventId: 1, ptsTicks: at(4.25) })] }),
    END,
  ])
  t.same(durations, [2, 2, 1, 2, 1])
  matchRanges(t, dateRanges, [{ startDate: dateOf(4.25) }])
  t.equal(dateRanges[0]?.duration, undefined, 'its duration is unknown')
})

t.test('a splice a few ticks after a key frame is cut at it', async (t) => {
  const { durations } = run(t, [
    ...clip(6, { 2: [insert({ eventId: 1, ptsTicks: at(5) + 2 })] }),
    END,
  ])
  t.same(durations, [2, 2, 1, 1])
})

t.test('a splice makes no cut without a key frame', async (t) => {
  const { durations, segments } = run(t, [
    ...clip(4, { 2: [insert({ eventId: 1, ptsTicks: at(3.5) })] }),
    END,
  ])
  t.same(durations, [2, 2])
  t.ok(segments.every(({ independent }) => independent))
})

t.test('an immediate splice, and one in the past, is cut at the next key frame', async (t) => {
  const immediate = run(t, [...clip(6, { 2.5: [insert({ eventId: 1 })] }), END])
  t.same(immediate.durations, [2, 1, 2, 1])
  matchRanges(t, immediate.dateRanges, [{ startDate: dateOf(3) }])
  const late = run(t, [...clip(6, { 2.5: [insert({ eventId: 1, ptsTicks: at(1.5) })] }), END])
  t.same(late.durations, [2, 1, 2, 1])
  matchRanges(t, late.dateRanges, [{ startDate: dateOf(1.5) }])
})

t.test(
  'the first segment is cut too: the longest of three makes the target duration',
  async (t) => {
    const { durations, dateRanges } = run(t, [
      ...clip(4, { 0: [insert({ eventId: 1, ptsTicks: at(1) })] }),
      END,
    ])
    t.same(durations, [1, 2, 1])
    matchRanges(t, dateRanges, [{ startDate: dateOf(1) }])
  },
)

t.test('a splice at a segment boundary makes no empty segment', async (t) => {
  const { durations } = run(t, [
    ...clip(6, { 2: [insert({ eventId: 1, ptsTicks: at(2) }), insert({ eventId: 2 })] }),
    END,
  ])
  t.same(durations, [2, 2, 2])
})

t.test('a break with auto_return ends as planned', async (t) => {
  const planned = { durationTicks: 3 * SEC, autoReturn: true }
  const { durations, dateRanges } = run(t, [
    ...clip(12, { 2: [insert({ eventId: 1, ptsTicks: at(4), break: planned })] }),
    END,
  ])
  t.same(durations, [2, 2, 2, 1, 2, 2, 1])
  matchRanges(t, dateRanges, [{ startDate: dateOf(4), plannedDuration: 3, duration: 3 }])
  t.equal(dateRanges[0]?.scte35In, undefined)
})

t.test('an announced end of a break goes before its planned end', async (t) => {
  const planned = { durationTicks: 2 * SEC, autoReturn: true }
  const { dateRanges } = run(t, [
    ...clip(14, {
      2: [insert({ eventId: 1, ptsTicks: at(4), break: planned })],
      5: [insert({ eventId: 1, out: false, ptsTicks: at(9) })],
    }),
    END,
  ])
  matchRanges(t, dateRanges, [{ plannedDuration: 2, duration: 5, scte35In: /^0xFC/ }])
})

t.test('a break whose end is not announced has its planned duration, a minute later', async (t) => {
  const planned = { durationTicks: 3 * SEC, autoReturn: false }
  const { durations, dateRanges, playlists } = run(t, [
    ...clip(70, { 2: [insert({ eventId: 1, ptsTicks: at(4), break: planned })] }),
    END,
  ])
  t.same(durations.slice(0, 5), [2, 2, 2, 1, 2], 'cut where it is planned to end')
  matchRanges(t, dateRanges, [{ plannedDuration: 3, duration: 3 }])
  t.notMatch(playlists.at(-6), ',DURATION=3')
})

t.test('a canceled splice does not appear (4.4.5.1.1)', async (t) => {
  const { durations, dateRanges } = run(t, [
    ...clip(8, {
      2: [insert({ eventId: 1, ptsTicks: at(5) }), signal(at(5), { eventId: 2, typeId: 0x30 })],
      3: [insert({ eventId: 1, canceled: true }), signal(at(5), { eventId: 2, canceled: true })],
    }),
    END,
  ])
  t.same(durations, [2, 2, 2, 2])
  t.same(dateRanges, [])
})

t.test('a splice announced again with other content appears once, as announced last', async (t) => {
  const { durations, dateRanges } = run(t, [
    ...clip(10, {
      2: [insert({ eventId: 1, ptsTicks: at(5) })],
      3: [insert({ eventId: 1, ptsTicks: at(7) })],
      8: [insert({ eventId: 1, ptsTicks: at(7.5) })],
    }),
    END,
  ])
  t.same(durations, [2, 2, 2, 1, 1, 2])
  matchRanges(t, dateRanges, [{ startDate: dateOf(7) }])
})

t.test('an event announced again after it happened keeps its date range', async (t) => {
  const planned = { durationTicks: SEC, autoReturn: true }
  const { dateRanges } = run(t, [
    ...clip(10, {
      2: [
        insert({ eventId: 1, ptsTicks: at(3), break: planned }),
        signal(at(3), { eventId: 2, typeId: 0x10 }),
      ],
      6: [
        insert({ eventId: 1, ptsTicks: at(3) }),
        signal(at(3), { eventId: 2, typeId: 0x10, durationTicks: SEC }),
      ],
    }),
    END,
  ])
  matchRanges(t, dateRanges, [
    { id: /^splice-1/, duration: 1 },
    { id: /^segm/, duration: 0 },
  ])
})

t.test('an event that is announced again after its end is another date range', async (t) => {
  const pair = (sec: number) => [
    insert({ eventId: 1, ptsTicks: at(sec) }),
    insert({ eventId: 1, out: false, ptsTicks: at(sec + 1) }),
  ]
  const { dateRanges } = run(t, [...clip(12, { 2: pair(3), 6: pair(8) }), END])
  matchRanges(t, dateRanges, [
    { startDate: dateOf(3), duration: 1 },
    { startDate: dateOf(8), duration: 1 },
  ])
})

t.test('the end of a break whose start was not seen is only a cut', async (t) => {
  const { durations, dateRanges } = run(t, [
    ...clip(8, { 2: [insert({ eventId: 1, out: false, ptsTicks: at(5) })] }),
    END,
  ])
  t.same(durations, [2, 2, 1, 2, 1])
  t.same(dateRanges, [])
})

t.test('time_signal by segmentation type (ANSI/SCTE 35 10.3.3.1)', async (t) => {
  t.test('advertisements and placements are pairs of out and in', async (t) => {
    const { durations, dateRanges } = run(t, [
      ...clip(12, {
        2: [signal(at(3), { eventId: 5, typeId: 0x34, durationTicks: 4 * SEC })],
        4: [
          signal(
            at(7),
            ...[
              { eventId: 5, typeId: 0x35 },
              { eventId: 6, typeId: 0x30 },
            ],
          ),
          signal(at(8), { eventId: 6, typeId: 0x31 }),
        ],
      }),
      END,
    ])
    t.same(durations, [2, 1, 2, 2, 1, 2, 2])
    matchRanges(t, dateRanges, [
      { id: /^segmentation-5-52-/, plannedDuration: 4, duration: 4, scte35In: /^0x/ },
      { id: /^segmentation-6-48-/, startDate: dateOf(7), duration: 1, scte35In: /^0x/ },
    ])
    t.equal(dateRanges[0]?.scte35In, dateRanges[1]?.scte35Out, 'each holds the whole section')
  })

  t.test(
    'a segmentation that starts and ends within the program is a command, and no cut',
    async (t) => {
      const section = timeSignal(at(5), [{ eventId: 5, typeId: 0x10, durationTicks: 60 * SEC }])
      const { durations, dateRanges } = run(t, [
        ...clip(10, {
          2: [splice(section), signal(at(6), { eventId: 4, typeId: 0x11 }), signal(at(6.5))],
          3.5: [signal(undefined)],
        }),
        END,
      ])
      t.same(durations, [2, 2, 2, 2, 2])
      const scte35Cmd = `0x${section.toString('hex').toUpperCase()}`
      matchRanges(t, dateRanges, [
        { startDate: dateOf(3.5), duration: 0, scte35Cmd: /^0xFC/ },
        { startDate: dateOf(5), duration: 60, scte35Cmd },
        { startDate: dateOf(6), duration: 0, scte35Cmd: /^0xFC/ },
        { startDate: dateOf(6.5), duration: 0, scte35Cmd: /^0xFC/ },
      ])
    },
  )
})

t.test('a date range stays until it is over before the oldest segment', async (t) => {
  const steps = clip(30, {
    2: [
      insert({ eventId: 1, ptsTicks: at(4) }),
      insert({ eventId: 1, out: false, ptsTicks: at(10) }),
      insert({ eventId: 2, ptsTicks: at(5) }),
    ],
  })
  const { playlists } = run(t, [...steps, END], 3)
  const last = playlists.findLast((text) => text.includes('splice-1-'))!
  t.equal(parseM3u8(last).manifest.segments?.[0]?.programDateTime, WALL_MS + 10_000)
  t.match(playlists.at(-1), 'splice-2-', 'one without an end stays')
})

t.test('the end of a break is listed although the break has left the playlist', async (t) => {
  const { playlists } = run(
    t,
    [
      ...clip(30, {
        2: [insert({ eventId: 1, ptsTicks: at(4) })],
        20: [insert({ eventId: 1, out: false, ptsTicks: at(10) })],
      }),
      END,
    ],
    3,
  )
  t.match(
    playlists.find((text) => text.includes('SCTE35-IN')),
    ',DURATION=6.00000',
  )
  t.notMatch(playlists.at(-1), 'DATERANGE')
})

t.test('across discontinuities', async (t) => {
  const pending = { 2: [insert({ eventId: 1, ptsTicks: at(9) })] }

  t.test('a splice is dropped with its encoder, and counted', async (t) => {
    const { dateRanges, facts, missed } = run(t, [
      ...clip(5, pending),
      { type: 'discontinuity' },
      ...clip(12),
      END,
    ])
    t.same(dateRanges, [])
    t.same(facts, ['SPLICE_MISSED'])
    t.equal(missed, 1)
  })

  t.test('a splice is dropped where timestamps jump away from it', async (t) => {
    for (const jumpSec of [1000, -1000]) {
      const { dateRanges, facts, missed } = run(t, [
        ...clip(5, pending),
        ...clip(12, {}, jumpSec),
        END,
      ])
      t.same(dateRanges, [])
      t.same(facts, ['TIMESTAMP_JUMP', 'SPLICE_MISSED'])
      t.equal(missed, 1)
    }
  })

  t.test('a splice stays where a stretch of media is lost', async (t) => {
    const { dateRanges, missed } = run(t, [...clip(3, pending), ...clip(6, {}, 8), END])
    matchRanges(t, dateRanges, [{ id: /^splice-1-/ }])
    t.equal(missed, 0)
  })

  t.test('a splice stays where tracks change', async (t) => {
    const { dateRanges } = run(t, [
      ...clip(5, pending),
      program(programOf({ ...VIDEO, pid: 300 }), true),
      ...clip(7, {}, 5),
      END,
    ])
    matchRanges(t, dateRanges, [{ id: /^splice-1-/, startDate: dateOf(9) }])
  })

  t.test('a break whose encoder left lasts as planned', async (t) => {
    const planned = { durationTicks: 20 * SEC, autoReturn: true }
    const { dateRanges } = run(t, [
      ...clip(5, { 2: [insert({ eventId: 1, ptsTicks: at(4), break: planned })] }),
      { type: 'discontinuity' },
      ...clip(5),
      END,
    ])
    matchRanges(t, dateRanges, [{ startDate: dateOf(4), duration: 20 }])
  })

  t.test('a splice is dated on the new time line', async (t) => {
    const { dateRanges, segments } = run(t, [
      ...clip(4),
      { type: 'discontinuity' },
      ...clip(6, { 1: [insert({ eventId: 1, ptsTicks: at(103) })] }, 100),
      END,
    ])
    const start = segments.find(({ discontinuity }) => discontinuity)!
    t.equal(dateRanges[0]?.startDate.getTime(), start.programDateTimeMs + 3000)
  })
})

t.test('audio without video is cut exactly', async (t) => {
  const steps: Step[] = [
    program(programOf(AUDIO)),
    insert({ eventId: 1, ptsTicks: at(3) }),
    ...audioUnits(START_TICKS, 40).map(unit),
    END,
  ]
  const { segments, dateRanges } = run(t, steps)
  matchRanges(t, dateRanges, [{ startDate: dateOf(3) }])
  t.ok(segments.some(({ startTicks }) => startTicks >= at(3) - 4500 && startTicks < at(3.18)))
})

t.test('a flood of splices is bounded, and a fact is reported', async (t) => {
  const flood = (ptsTicks: number | undefined) =>
    Array.from({ length: 300 }, (_, eventId) => insert({ eventId, ptsTicks }))
  const later = run(t, [...clip(8, { 2: flood(at(5)) }), END])
  t.equal(later.dateRanges.length, 64)
  t.equal(later.missed, 300 - 64)
  const lists = clip(20, { 2: flood(at(3)).slice(0, 60), 6: flood(at(7)).slice(100, 160) })
  const now = run(t, [...lists, END])
  t.equal(now.dateRanges.length, 64)
  t.ok(now.facts.includes('full'))
})

t.test('a splice before the first frame takes effect with it', async (t) => {
  const [programFirst, ...units] = clip(6)
  for (const ptsTicks of [undefined, at(-5)]) {
    const { dateRanges, durations } = run(t, [
      ...[programFirst!, insert({ eventId: 1, ptsTicks }), ...units, END],
    ])
    matchRanges(t, dateRanges, [{ startDate: dateOf(0) }])
    t.same(durations, [2, 2, 2])
  }
})

t.test('no segment is shorter than the minimum', async (t) => {
  const [key] = videoUnits({ fromTicks: at(2) + 90, frames: 1, framesPerGop: 1 })
  const [before, after] = [clip(2), clip(4, {}, 2).slice(1)]
  const { durations } = run(t, [
    ...[...before, ...after.slice(0, 1), insert({ eventId: 1 }), unit(key!), ...after.slice(1)],
    END,
  ])
  t.same(durations, [2, 2, 2])
})

t.test('the planned end of a break is dropped with the break', async (t) => {
  const planned = { durationTicks: 5 * SEC, autoReturn: true }
  const { dateRanges, durations } = run(t, [
    ...clip(14, {
      2: [
        insert({ eventId: 1, ptsTicks: at(3), break: planned }),
        insert({ eventId: 1, out: false, ptsTicks: at(5) }),
      ],
      6: [insert({ eventId: 1, ptsTicks: at(7) })],
    }),
    END,
  ])
  matchRanges(t, dateRanges, [{ duration: 2 }, { startDate: dateOf(7) }])
  t.equal(dateRanges[1]?.duration, undefined)
  t.same(durations, [2, 1, 2, 2, 2, 2, 2, 1], 'no cut at 8 s')
})

t.test('the oldest of 16 open breaks is over when another begins', async (t) => {
  const outs = Array.from({ length: 20 }, (_, eventId) =>
    insert({ eventId, ptsTicks: at(3 + eventId / 10) }),
  )
  const { dateRanges } = run(t, [...clip(8, { 2: outs }), END])
  const durations = dateRanges.map(({ duration }) => duration)
  t.same(durations.slice(0, 5), [1.6, 1.6, 1.6, 1.6, undefined])
  t.equal(durations.length, 20)
})

t.test('a later rendition lists the date ranges of the main one', async (t) => {
  const { segments } = run(t, [...clip(4), END])
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments: 3 })
  presentation.append(segments[0]!, 0)
  presentation.addDateRange({ id: 'a', startMs: WALL_MS })
  presentation.append({ ...segments[0]!, rendition: 'audio-2', uri: 'e-a2-0.ts' }, 0)
  presentation.setTarget(2)
  presentation.addDateRange({ id: 'b', startMs: WALL_MS })
  const text = presentation.files.get('audio-2.m3u8')?.chunks.join('') ?? ''
  t.match(parseM3u8(text).manifest.dateRanges, [{ id: 'a' }, { id: 'b' }])
})

t.test('points of one moment happen in the order of their times', async (t) => {
  const { dateRanges } = run(t, [
    ...clip(8, {
      2: [
        insert({ eventId: 1, out: false, ptsTicks: at(5.06) }),
        insert({ eventId: 1, ptsTicks: at(5.02) }),
      ],
    }),
    END,
  ])
  matchRanges(t, dateRanges, [{ startDate: dateOf(5.02), duration: 0.04 }])
})

t.test('every version of the playlist keeps the rules, for arbitrary splices', async () => {
  const sec = fc.double({ min: -5, max: 40, noNaN: true })
  const ptsTicks = fc.option(sec.map(at).map(Math.round), { nil: undefined })
  const planned = fc.record({
    durationTicks: fc.integer({ min: 0, max: 20 * SEC }),
    autoReturn: fc.boolean(),
  })
  const fields = fc.record({
    ...{ eventId: fc.nat(2), canceled: fc.nat(9).map((roll) => roll === 0), out: fc.boolean() },
    ...{ ptsTicks, break: fc.option(planned, { nil: undefined }) },
  })
  const typeId = fc.constantFrom(0x10, 0x11, 0x22, 0x23, 0x30, 0x31, 0x34, 0x35)
  const segmentations = fc.array(fc.record({ eventId: fc.nat(2), typeId }), { maxLength: 2 })
  const announcement = fc.oneof(
    fields.map(insert),
    fc.tuple(ptsTicks, segmentations).map(([pts, each]) => signal(pts, ...each)),
  )
  const announced = fc.array(fc.tuple(fc.nat(300), announcement), { maxLength: 40 })
  const jumps = fc.array(fc.tuple(fc.nat(300), fc.constantFrom(undefined, 50, -50)), {
    maxLength: 2,
  })
  fc.assert(
    fc.property(announced, jumps, (announced, jumps) => {
      const steps = clip(30).map((step): Step[] => [step])
      for (const [index, output] of announced) steps[index]!.push(output)
      let fromSec = 0
      for (const [index, jumpSec] of jumps) {
        fromSec += jumpSec ?? 0
        steps[index]!.push(
          ...(jumpSec === undefined ? [{ type: 'discontinuity' } as const] : []),
          ...clip(5, {}, fromSec).slice(1),
        )
      }
      return simulate([...steps.flat(), END], 4).complaints.length === 0
    }),
    { numRuns: 40 },
  )
})
