import t from 'tap'
import { ActiveWarnings } from '../../src/diagnosis/active-warnings.ts'
import type { WarningFact } from '../../src/diagnosis/warnings.ts'

const SEC = 1_000_000

function setUp() {
  const begun: string[] = []
  const warnings = new ActiveWarnings(({ code }) => begun.push(code))
  return {
    warnings,
    /** Codes in the order in which the warnings began. */
    begun,
    /** Codes of the warnings that hold. */
    held: () => warnings.list.map(({ code }) => code),
    message: () => warnings.list[0]?.message ?? '',
  }
}

const drift = (driftSec: number): WarningFact => ({ code: 'AV_DRIFT', driftSec })

t.test(
  'a warning begins with its condition and ends when the condition is no longer reported',
  async (t) => {
    const { warnings, begun, held, message } = setUp()
    warnings.observe([{ code: 'NO_MEDIA', silentSec: 5 }], 0)
    warnings.observe([{ code: 'NO_MEDIA', silentSec: 6 }], SEC)
    t.match(message(), / 6 s/, 'with the newest figures')
    t.strictSame(begun, ['NO_MEDIA'])
    warnings.observe([], 2 * SEC)
    t.strictSame(held(), [])
    warnings.observe([{ code: 'NO_MEDIA', silentSec: 5 }], 3 * SEC)
    t.strictSame(begun, ['NO_MEDIA', 'NO_MEDIA'], 'begins again when the condition returns')
  },
)

t.test('a figure begins a warning at one threshold and ends it at a lower one', async (t) => {
  const { warnings, begun, held, message } = setUp()
  warnings.observe([drift(0.25)], 0)
  t.strictSame(held(), [])
  warnings.observe([drift(-0.31)], SEC)
  warnings.observe([drift(-0.25)], 2 * SEC)
  t.match(message(), /0\.25 s behind/)
  t.strictSame(held(), ['AV_DRIFT'])
  warnings.observe([drift(0.2)], 3 * SEC)
  t.strictSame(held(), [])
  t.strictSame(begun, ['AV_DRIFT'])
})

t.test('an event holds for 30 s after the last one', async (t) => {
  const { warnings, begun, held, message } = setUp()
  warnings.report({ code: 'TIMESTAMP_JUMP', jumpSec: 1000 }, 0)
  warnings.observe([], 29 * SEC)
  warnings.report({ code: 'TIMESTAMP_JUMP', jumpSec: -20 }, 29 * SEC)
  t.match(message(), /jumped 20 s back/)
  warnings.observe([], 58 * SEC)
  t.strictSame(held(), ['TIMESTAMP_JUMP'])
  warnings.observe([], 59 * SEC)
  t.strictSame(held(), [])
  t.strictSame(begun, ['TIMESTAMP_JUMP'])
})

t.test('a fact of segments holds for three target durations', async (t) => {
  const { warnings, held } = setUp()
  warnings.report({ code: 'GOP_TOO_LONG', gopSec: 60, limitSec: 4, targetSec: 60 }, 0)
  warnings.observe([], 179 * SEC)
  t.strictSame(held(), ['GOP_TOO_LONG'])
  warnings.observe([], 180 * SEC)
  t.strictSame(held(), [])
})

t.test('points of splices are summed while the warning holds', async (t) => {
  const { warnings, message } = setUp()
  warnings.report({ code: 'SPLICE_MISSED', points: 2 }, 0)
  warnings.report({ code: 'SPLICE_MISSED', points: 1 }, SEC)
  t.match(message(), /times of 3 SCTE-35/)
})

t.test('a warning that another one explains does not hold beside it', async (t) => {
  const { warnings, begun, held } = setUp()
  const odd: WarningFact = { code: 'FRAME_RATE_ODD', measured: 20, announced: 30 }
  const gaps = (count: number): WarningFact => ({
    code: 'PTS_GAPS',
    count,
    spanSec: 30,
    missingSec: 1,
  })
  warnings.observe([gaps(0), odd], 0)
  t.strictSame(held(), ['FRAME_RATE_ODD'])
  warnings.observe([gaps(1), odd], SEC)
  t.strictSame(held(), ['PTS_GAPS'])
  warnings.observe([gaps(0), odd], 2 * SEC)
  t.strictSame(held(), ['FRAME_RATE_ODD'])
  t.strictSame(begun, ['FRAME_RATE_ODD', 'PTS_GAPS', 'FRAME_RATE_ODD'])
})

t.test('clear ends all warnings, also one that holds until another encoder connects', async (t) => {
  const { warnings, held } = setUp()
  const excess: WarningFact = { code: 'BITRATE_EXCEEDED', meanBps: 11e6, maxBps: 10e6 }
  warnings.report(excess, 0)
  warnings.observe([], 3600 * SEC)
  t.strictSame(held(), ['BITRATE_EXCEEDED'])
  warnings.clear()
  t.strictSame(held(), [])
})
