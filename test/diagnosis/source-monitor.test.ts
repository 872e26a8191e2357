import t, { type Test } from 'tap'
import type { PesUnit } from '../../src/mpegts/pes-unit.ts'
import { createDemuxerStats, type DemuxerStats } from '../../src/mpegts/demux/demuxer-stats.ts'
import type { ProgramChoice } from '../../src/mpegts/program-choice.ts'
import type { Program } from '../../src/mpegts/track.ts'
import { ActiveWarnings } from '../../src/diagnosis/active-warnings.ts'
import { SourceMonitor } from '../../src/diagnosis/source-monitor.ts'
import { AUDIO, programOf, VIDEO } from '../hls/source.ts'

const SEC = 1_000_000
const TICKS = 90_000

/** Interval of `LiveStream.tick`. */
const TICK_US = 250_000

/** 30 frames a second as `VIDEO` announces, each 60th a key frame. */
const FRAME_TICKS = 3000
const GOP_FRAMES = 60
/** 8 AAC frames of 48 kHz. */
const AUDIO_TICKS = 15_360

/** Deviation of a stretch of the source from a good one. */
interface Oddity {
  /** Changes or drops a frame of video or audio; `index` counts from the start of the source. */
  readonly alter?: (unit: PesUnit, index: number) => Partial<PesUnit> | undefined
  /** Speed of the timestamps against the wall clock. */
  readonly rate?: number
  /** Delay of arrival. */
  readonly delayUs?: (nowUs: number) => number
  /** Added to the counters each second. */
  readonly stats?: Partial<Record<keyof DemuxerStats, number>>
  readonly packetsDropped?: number
  readonly playlist?: readonly [listed: number, wanted: number]
}

function setUp({
  isKnown = true,
  program = programOf(VIDEO, AUDIO),
  choice = 'first',
  programNumbers = [1],
}: {
  /** PAT and PMT came. */
  isKnown?: boolean
  program?: Program
  choice?: ProgramChoice
  programNumbers?: number[]
} = {}) {
  const monitor = new SourceMonitor({ program: choice, segmentSec: 2 })
  const stats = createDemuxerStats()
  const begun: string[] = []
  const warnings = new ActiveWarnings(({ code }) => begun.push(code))
  let nowUs = 7 * SEC
  let packetsDropped = 0
  let known: Program | undefined
  let listed = programNumbers
  const observe = ({ playlist: [listedSegments, wantedSegments] = [0, 0] }: Oddity = {}) => {
    const playlist = { listedSegments, wantedSegments, cutSegments: 4, releasedEarly: 0, gaps: 0 }
    const figures = { ...playlist, short: true, advisedBytes: 0, packetsDropped }
    const seen = { stats, program: known, programNumbers: listed, ...figures }
    warnings.observe(monitor.observe(seen, nowUs), nowUs)
  }
  const announce = (next: Program) => {
    known = next
    monitor.handle({ type: 'program', program: next, layoutChanged: false })
  }
  const next = { video: 0, audio: 0 }
  /** Media of this time has been sent. */
  let sentTicks = 0
  const send = (oddity: Oddity) => {
    for (;;) {
      const videoTicks = next.video * FRAME_TICKS
      const audioTicks = next.audio * AUDIO_TICKS
      const isAudio = audioTicks < videoTicks
      if ((isAudio ? audioTicks : videoTicks) >= sentTicks) return
      const index = isAudio ? next.audio++ : next.video++
      const ticks = (isAudio ? audioTicks : videoTicks) + 10 * TICKS
      const unit: PesUnit = {
        track: isAudio ? AUDIO : VIDEO,
        ...{
          chunks: [],
          sizeBytes: 0,
          payload: Buffer.alloc(0),
          damaged: false,
          newParameters: false,
          inBandSets: false,
        },
        gradualRefresh: false,
        ...{ decodableLeading: false, startsFrame: true },
        randomAccess: isAudio || index % GOP_FRAMES === 0,
        ...{ ptsTicks: ticks, dtsTicks: ticks },
      }
      if (known?.tracks.every(({ pid }) => pid !== unit.track.pid) !== false) continue
      const changes = oddity.alter === undefined ? {} : oddity.alter(unit, index)
      if (changes === undefined) continue
      monitor.handle({ type: 'unit', unit: { ...unit, ...changes } })
    }
  }
  observe()
  if (isKnown) announce(program)
  return {
    /** Codes in the order in which the warnings began. */
    begun,
    /** Codes of the warnings that hold. */
    held: () => warnings.list.map(({ code }) => code),
    message: (code: string) => warnings.list.find((each) => each.code === code)?.message,
    announce,
    listPrograms: (numbers: number[]) => void (listed = numbers),
    run: (seconds: number, oddity: Oddity = {}) => {
      const usual = { packets: 1000, patSections: 10, pmtSections: 10 }
      for (let tick = 0; tick < (seconds * SEC) / TICK_US; tick++) {
        nowUs += TICK_US
        packetsDropped += (oddity.packetsDropped ?? 0) / 4
        for (const [name, perSec] of Object.entries({ ...usual, ...oddity.stats })) {
          stats[name as keyof DemuxerStats] += perSec / 4
        }
        const lateUs = oddity.delayUs?.(nowUs) ?? 0
        sentTicks += ((TICK_US * (oddity.rate ?? 1)) / SEC) * TICKS
        const aheadTicks = sentTicks
        sentTicks -= (lateUs / SEC) * TICKS
        send(oddity)
        sentTicks = aheadTicks
        observe(oddity)
      }
    },
  }
}

const ofVideo =
  (change: (unit: PesUnit, index: number) => Partial<PesUnit> | undefined): Oddity['alter'] =>
  (unit, index) =>
    unit.track === VIDEO ? change(unit, index) : {}

const ofAudio =
  (change: (unit: PesUnit, index: number) => Partial<PesUnit> | undefined): Oddity['alter'] =>
  (unit, index) =>
    unit.track === AUDIO ? change(unit, index) : {}

const shifted = ({ ptsTicks, dtsTicks }: PesUnit, ticks: number) => ({
  ptsTicks: ptsTicks + ticks,
  dtsTicks: dtsTicks + ticks,
})

/** Checks that a warning begins within 12 s of its cause and ends within 32 s of the last. */
function beginsAndEnds(t: Test, code: string, oddity: Oddity, message: RegExp) {
  const source = setUp()
  source.run(60)
  t.strictSame(source.held(), [], 'a good source')
  source.run(12, oddity)
  t.strictSame(source.held(), [code])
  t.match(source.message(code), message)
  source.run(15)
  t.strictSame(source.held(), [code], 'it does not flicker')
  source.run(17)
  t.strictSame(source.held(), [], 'it is over')
  source.run(12, oddity)
  t.strictSame(source.begun, [code, code], 'warns again of a condition that returns')
}

t.test('a good source has no warning for ten minutes', async (t) => {
  const { run, begun } = setUp()
  run(600)
  t.strictSame(begun, [])
})

t.test('a source without audio or without video has no warning', async (t) => {
  for (const track of [VIDEO, AUDIO]) {
    const { run, begun } = setUp({ program: programOf(track) })
    run(300)
    t.strictSame(begun, [], track.kind)
  }
})

t.test('tables', async (t) => {
  t.test('NO_PAT begins after 3 s of data, NO_PMT after the PAT, and both end', async (t) => {
    const { run, held, begun, announce, listPrograms } = setUp({
      isKnown: false,
      programNumbers: [],
    })
    const none = { packets: 0, patSections: 0, pmtSections: 0 }
    run(1, { stats: none })
    t.strictSame(held(), [], 'there is no data at all')
    run(3, { stats: { ...none, skippedBytes: 1000 } })
    t.strictSame(held(), [])
    run(2, { stats: { ...none, skippedBytes: 1000 } })
    t.strictSame(held(), ['NO_PAT'])
    listPrograms([1])
    run(1, { stats: { pmtSections: 0 } })
    t.strictSame(held(), ['NO_PMT'])
    announce(programOf(VIDEO, AUDIO))
    run(1)
    t.strictSame(held(), [])
    t.strictSame(begun, ['NO_PAT', 'NO_PMT'])
  })

  t.test('NO_PMT names the programs of the PAT', async (t) => {
    const { run, message } = setUp({ isKnown: false, programNumbers: [3, 7] })
    run(5, { stats: { pmtSections: 0 } })
    t.match(message('NO_PMT'), /^No PMT of programs 3, 7 for 3 s\. /)
  })

  t.test('PROGRAM_NOT_FOUND names the programs of the PAT', async (t) => {
    const source = setUp({ isKnown: false, choice: 5, programNumbers: [3, 7] })
    source.run(2)
    t.match(source.message('PROGRAM_NOT_FOUND'), /^Program 5 is wanted, .* lists programs 3, 7\. /)
    source.listPrograms(Array.from({ length: 20 }, (_, index) => index + 10))
    source.run(20)
    t.match(source.message('PROGRAM_NOT_FOUND'), /programs 10, 11, 12 and 17 more\. /)
    t.strictSame(source.held(), ['PROGRAM_NOT_FOUND'], 'and nothing else is said')
    source.listPrograms([5])
    source.announce(programOf(VIDEO, AUDIO))
    source.run(1)
    t.strictSame(source.held(), [])
  })

  t.test('PSI_TOO_RARE begins above 2 s and ends at 1 s', async (t) => {
    const { run, held, message } = setUp()
    run(12, { stats: { pmtSections: 0.1 } })
    t.strictSame(held(), ['PSI_TOO_RARE'])
    t.match(message('PSI_TOO_RARE'), /^PAT and PMT come every 10 s/)
    run(20)
    t.strictSame(held(), [], 'ten a second make up for it')
    run(60, { stats: { patSections: 0.75, pmtSections: 0.75 } })
    t.strictSame(held(), [], 'every 1.3 s is rare, but not worth a warning')
    run(60, { stats: { patSections: 0.4, pmtSections: 0.4 } })
    run(60, { stats: { patSections: 0.75, pmtSections: 0.75 } })
    t.strictSame(held(), ['PSI_TOO_RARE'], 'that began holds up to one a second')
  })
})

t.test('NO_MEDIA begins after 5 s without video and audio', async (t) => {
  const { run, held, begun } = setUp()
  run(4.5, { alter: () => undefined })
  t.strictSame(held(), [])
  run(1, { alter: () => undefined })
  t.strictSame(held(), ['NO_MEDIA'])
  run(1, { alter: ofVideo(() => undefined) })
  t.strictSame(held(), [], 'audio is enough')
  run(10, { alter: () => undefined })
  t.strictSame(begun, ['NO_MEDIA', 'NO_MEDIA'], 'also in mid-stream')
})

t.test('packets', async (t) => {
  t.test('continuity errors', async (t) => {
    const stats = { continuityErrors: 4 }
    beginsAndEnds(t, 'CONTINUITY_ERRORS', { stats }, /^48 continuity errors in 30 s/)
  })
  t.test('transport errors', async (t) => {
    beginsAndEnds(
      t,
      'TRANSPORT_ERRORS',
      { stats: { transportErrors: 4 } },
      /^48 packets in 30 s have transport_error_indicator/,
    )
  })
  t.test('scrambled packets', async (t) => {
    beginsAndEnds(
      t,
      'SCRAMBLED',
      { stats: { scrambledPackets: 400 } },
      /packets in 30 s are scrambled/,
    )
  })
  t.test('does not warn of losses of the connection', async (t) => {
    const { run, begun } = setUp()
    run(20)
    const gap = ofVideo((_, index) => (index % 90 < 30 ? undefined : {}))
    run(20, { packetsDropped: 8, stats: { continuityErrors: 8 }, alter: gap })
    run(1, { stats: { continuityErrors: 1 } })
    run(60)
    t.strictSame(begun, [])
  })
})

t.test('timestamps', async (t) => {
  t.test('PTS_GAPS begins and ends with missing frames', async (t) => {
    const alter = ofVideo((_, index) => (index % 90 >= 70 && index % 90 < 85 ? undefined : {}))
    beginsAndEnds(t, 'PTS_GAPS', { alter }, /^\d(\.\d)? s of video are missing in 30 s \(\d gaps\)/)
  })
  t.test('a variable frame rate has no gaps, and is no less than announced', async (t) => {
    const { run, begun } = setUp()
    run(60, { alter: ofVideo((_, index) => ([1, 3].includes(index % 10) ? undefined : {})) })
    t.strictSame(begun, ['FRAME_RATE_ODD'])
  })
  t.test('DTS_REPEATED begins and ends with repeated times', async (t) => {
    const alter = ofVideo((unit, index) => (index % 30 === 1 ? shifted(unit, -3000) : {}))
    beginsAndEnds(t, 'DTS_REPEATED', { alter }, /back 1\d times in 30 s/)
  })
  t.test('does not warn of times repeated by a PES without a PTS', async (t) => {
    const { run, begun } = setUp()
    const alter = ofVideo((unit, index) => (index % 2 === 1 ? shifted(unit, -3000) : {}))
    run(60, { alter, stats: { pesWithoutPts: 15 } })
    t.strictSame(begun, ['FRAME_RATE_ODD'].slice(1))
  })
  t.test('PTS before DTS', async (t) => {
    const alter = ofVideo((unit) => ({ ptsTicks: unit.dtsTicks - 1 }))
    beginsAndEnds(t, 'PTS_BEFORE_DTS', { alter }, /^PTS is before DTS 3\d\d times in 30 s/)
  })
  t.test('FRAME_RATE_ODD gives the measured and the announced rate', async (t) => {
    const { run, message, held } = setUp()
    run(15, { alter: ofVideo((_, index) => (index % 3 === 1 ? undefined : {})) })
    t.match(message('FRAME_RATE_ODD'), /^20 frames arrive a second, 30 are announced\. /)
    run(12)
    t.strictSame(held(), [])
  })
  t.test('counts two fields as one frame', async (t) => {
    const { parameters, ...track } = VIDEO
    const interlaced = { ...track, parameters: { ...parameters!, frameRate: 15 } }
    const { run, begun } = setUp({ program: programOf(interlaced, AUDIO) })
    run(60, { alter: ofVideo((_, index) => ({ startsFrame: index % 2 === 0 })) })
    t.strictSame(begun, [])
  })
  t.test('does not take timestamp jumps for drift', async (t) => {
    const { run, begun } = setUp()
    for (let turn = 0; turn < 20; turn++) {
      run(30, { alter: (unit) => shifted(unit, turn * 1000 * TICKS) })
    }
    t.strictSame(begun, [])
  })
})

t.test('audio and video', async (t) => {
  t.test('AV_SKEW holds for 30 s where tracks begin 1 s apart', async (t) => {
    const { run, message, held, begun } = setUp()
    run(3, { alter: ofAudio((_, index) => (index < 6 ? undefined : {})) })
    t.match(message('AV_SKEW'), /^Audio begins 1 s after video\. /)
    run(40)
    t.strictSame(held(), [])
    t.strictSame(begun, ['AV_SKEW'])
    const other = setUp()
    other.run(3, { alter: ofVideo((_, index) => (index < 30 ? undefined : {})) })
    t.match(other.message('AV_SKEW'), /^Audio begins 1 s before video\. /)
  })
  t.test('does not warn of half a second at the start, or of audio that joins later', async (t) => {
    const { run, begun, announce } = setUp()
    run(60, { alter: ofAudio((_, index) => (index < 3 ? undefined : {})) })
    announce(programOf(VIDEO))
    run(60)
    announce(programOf(VIDEO, AUDIO))
    run(60)
    t.strictSame(begun, [])
  })
  t.test('AV_SKEW holds while audio stays ahead or behind', async (t) => {
    const ahead = setUp()
    ahead.run(12, { alter: ofAudio((unit) => shifted(unit, 0.9 * TICKS)) })
    const message = ahead.message('AV_SKEW')
    t.match(message, /^Audio is 0\.\d+ s ahead of video\. /)
    ahead.run(12, { alter: ofAudio((unit) => shifted(unit, 0.3 * TICKS)) })
    t.notOk(ahead.held().includes('AV_SKEW'))
    const behind = setUp()
    behind.run(60, { alter: ofAudio((unit) => shifted(unit, -1.4 * TICKS)) })
    t.strictSame(behind.begun, [], 'muxers may send video early')
    behind.run(12, { alter: ofAudio((unit) => shifted(unit, -1.9 * TICKS)) })
    t.match(behind.message('AV_SKEW'), /^Audio is 1\.\d s behind video\. /)
  })
  t.test('AV_DRIFT begins at 0.3 s', async (t) => {
    const { run, message, held, begun } = setUp()
    run(60)
    const slow = ofAudio((unit) => shifted(unit, -0.002 * (unit.dtsTicks - 70 * TICKS)))
    run(140, { alter: slow })
    t.strictSame(held(), [])
    run(40, { alter: slow })
    t.match(message('AV_DRIFT'), /^Audio moved 0\.3\d s behind video\. /)
    t.strictSame(begun, ['AV_DRIFT'])
    run(60)
    t.strictSame(held(), [])
  })
})

t.test('the clock', async (t) => {
  t.test('CLOCK_DRIFT begins after 3 minutes in spite of jitter', async (t) => {
    for (const ppm of [-500, 300]) {
      let state = 1
      const jitter = () => (state = (state * 48_271) % 0x7fffffff) / 0x7fffffff
      const { run, begun, message } = setUp()
      const rate = 1 + ppm * 1e-6
      run(120, { rate, delayUs: () => jitter() * 200_000 })
      t.strictSame(begun, [])
      run(120, { rate, delayUs: () => jitter() * 200_000 })
      t.strictSame(begun, ['CLOCK_DRIFT'])
      const [, shownPpm, speed] = /is (\d+) ppm too (fast|slow), /.exec(message('CLOCK_DRIFT')!)!
      t.equal(speed, ppm > 0 ? 'fast' : 'slow')
      t.ok(Math.abs(Number(shownPpm) - Math.abs(ppm)) < 0.25 * Math.abs(ppm), `${shownPpm} ppm`)
    }
  })
  t.test('does not warn of 50 ppm, or of a route that becomes longer', async (t) => {
    const { run, begun } = setUp()
    run(200, { rate: 1.00005 })
    run(200, { rate: 1.00005, delayUs: () => 60_000 })
    run(3, { rate: 1.00005, delayUs: (nowUs) => nowUs % 3_000_000 })
    run(200, { rate: 1.00005, delayUs: () => 60_000 })
    t.strictSame(begun, [])
  })
  t.test('NOT_REAL_TIME begins faster and slower than real time', async (t) => {
    const { run, message, held } = setUp()
    run(15, { rate: 3 })
    t.match(message('NOT_REAL_TIME'), /^3 s of media arrive a second\. .* Send in real time/)
    run(15)
    t.strictSame(held(), [])
    const losses = {
      packetsDropped: 100,
      alter: ofVideo((_, n) => (n % 100 < 70 ? undefined : {})),
    }
    run(15, { rate: 3, ...losses })
    t.ok(held().includes('NOT_REAL_TIME'), 'also where the line does not carry it')
    run(15)
    run(15, { rate: 0.8 })
    t.match(message('NOT_REAL_TIME'), /^0\.8 s of media arrive a second\. .* Set a faster/)
  })
  t.test('does not warn of a connection that stalls and catches up', async (t) => {
    const { run, begun } = setUp()
    for (let turn = 0; turn < 10; turn++) {
      run(3, { rate: 0 })
      run(1, { rate: 4 })
      run(16)
    }
    t.strictSame(begun, [])
  })
})

t.test('key frames', async (t) => {
  const keys = (isKey: (index: number) => boolean) =>
    ofVideo((_, index) => ({ randomAccess: isKey(index) }))

  t.test('GOP_IRREGULAR gives the range of the intervals', async (t) => {
    const { run, message, begun, held } = setUp()
    run(30, { alter: keys((index) => [0, 120].includes(index % 150)) })
    t.match(message('GOP_IRREGULAR'), /^Key frames are 1 to 4 s apart/)
    run(60)
    t.strictSame(held(), [])
    t.strictSame(begun, ['GOP_IRREGULAR'])
  })
  t.test('does not warn of scene cuts within a segment, or of one late key frame', async (t) => {
    const { run, begun } = setUp()
    const cuts = { alter: keys((index) => [0, 50].includes(index % 60)) }
    run(60, cuts)
    run(4, { alter: keys(() => false) })
    run(60, cuts)
    t.strictSame(begun, [])
  })
  t.test('does not warn of key frames that the connection lost', async (t) => {
    const { run, begun } = setUp()
    for (let turn = 0; turn < 20; turn++) {
      run(4)
      run(2, { packetsDropped: 1, alter: keys(() => false) })
    }
    t.strictSame(begun, [])
  })
  t.test('OPEN_GOP begins with two open GOPs and ends after five closed ones', async (t) => {
    const closed = ofVideo((unit) => ({ ptsTicks: unit.dtsTicks + 6000 }))
    const open = ofVideo(({ dtsTicks }, index) => ({
      ptsTicks: dtsTicks + (index % GOP_FRAMES === 1 ? 0 : 6000),
    }))
    const { run, begun, held } = setUp()
    run(20, { alter: closed })
    run(6, { alter: open })
    t.strictSame(held(), ['OPEN_GOP'])
    run(8, { alter: closed })
    t.strictSame(held(), ['OPEN_GOP'])
    run(4, { alter: closed })
    t.strictSame(held(), [])
    t.strictSame(begun, ['OPEN_GOP'])
  })
  t.test('does not warn of decodable leading frames', async (t) => {
    const { run, begun } = setUp()
    const alter = ofVideo(({ dtsTicks }, index) => {
      const decodableLeading = index % GOP_FRAMES === 1
      return { decodableLeading, ptsTicks: dtsTicks + (decodableLeading ? 0 : 6000) }
    })
    run(60, { alter })
    t.strictSame(begun, [])
  })
  t.test('INTRA_REFRESH begins and ends with recovery points', async (t) => {
    const alter = ofVideo(({ randomAccess }, index) =>
      index < 3600 && randomAccess ? {} : { randomAccess: false, gradualRefresh: randomAccess },
    )
    const { run, held } = setUp()
    run(125, { alter })
    t.strictSame(held(), ['INTRA_REFRESH'])
    run(40)
    t.strictSame(held(), [])
  })
})

t.test('CACHE_TOO_SMALL holds until 30 s after the shortage', async (t) => {
  const { run, held, begun } = setUp()
  run(10, { playlist: [4, 6] })
  t.strictSame(held(), [], 'only four segments were cut so far')
  run(1, { playlist: [3, 6] })
  t.strictSame(held(), ['CACHE_TOO_SMALL'])
  run(29, { playlist: [6, 6] })
  t.strictSame(held(), ['CACHE_TOO_SMALL'])
  run(2, { playlist: [6, 6] })
  t.strictSame(held(), [])
  t.strictSame(begun, ['CACHE_TOO_SMALL'])
})
