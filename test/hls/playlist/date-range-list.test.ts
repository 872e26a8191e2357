import t from 'tap'
import type { DateRange } from '../../../src/hls/date-range.ts'
import { DateRangeList, DateRangeText } from '../../../src/hls/playlist/date-range-list.ts'
import type { PlaylistSegment } from '../../../src/hls/playlist/playlist.ts'

const WALL_MS = Date.UTC(2026, 0, 1)
const MAX_BYTES = 32 * 1024
const SECTION = Buffer.alloc(4096)

function range(index: number, fields: Partial<DateRange> = {}): DateRange {
  return { id: `splice-${index}`, startMs: WALL_MS + index, ...fields }
}

function segmentAt(programDateTimeMs: number): PlaylistSegment {
  return { uri: 'e-1.ts', durationSec: 2, programDateTimeMs, discontinuity: false, gap: false }
}

t.test('date ranges of any size have 32 KiB, and those without room are not listed', async (t) => {
  for (const scte35Out of [SECTION, SECTION.subarray(0, 2000), SECTION.subarray(0, 400)]) {
    const list = new DateRangeList()
    const listed = Array.from({ length: 200 }, (_, index) =>
      list.add(range(index, { scte35Out }), 0),
    )
    const count = list.dateRanges.length
    t.ok(list.text.length <= MAX_BYTES, `${list.text.length} bytes`)
    t.ok(list.text.length > 0.75 * MAX_BYTES || count === 64, `${list.text.length} bytes`)
    t.equal(listed.filter((each) => each !== undefined).length, count)
  }
})

t.test('a playlist has 64 date ranges, however short', async (t) => {
  const list = new DateRangeList()
  for (let index = 0; index < 64; index++) t.ok(list.add(range(index), 0))
  t.equal(list.add(range(64), 0), undefined)
})

t.test(
  'a date range that is too large for any playlist is not listed, and others are',
  async (t) => {
    const list = new DateRangeList()
    t.equal(list.add(range(0, { scte35Cmd: Buffer.alloc(MAX_BYTES) }), 0), undefined)
    t.ok(list.add(range(1, { scte35Cmd: SECTION }), 0))
  },
)

t.test('the end of a listed date range has room without its section', async (t) => {
  const list = new DateRangeList()
  for (let index = 0; index < 64; index++) list.add(range(index, { scte35Out: SECTION }), 0)
  for (let index = 0; index < 16; index++)
    list.add(range(index + 64, { scte35Out: SECTION.subarray(0, 900) }), 0)
  const open = list.dateRanges
  for (const dateRange of open) {
    const ended = { ...dateRange, durationSec: 95_443.71769, scte35In: SECTION }
    t.strictSame(list.add(ended, 1), { ...dateRange, durationSec: 95_443.71769 })
  }
  t.equal(list.dateRanges.length, open.length)
  t.ok(list.text.length <= MAX_BYTES, `${list.text.length} bytes`)
})

t.test('a date range that has left makes room for another', async (t) => {
  const list = new DateRangeList()
  const large = { scte35Cmd: SECTION, durationSec: 0 }
  for (let index = 0; index < 8; index++) list.add(range(index, large), 0)
  t.equal(list.add(range(8, large), 1), undefined)
  list.expire(segmentAt(WALL_MS + 2000), 1)
  t.equal(list.text.length, 0)
  t.ok(list.add(range(9, large), 1))
})

t.test(
  'lists with the same date ranges share their text, and a line is formatted once',
  async (t) => {
    const text = new DateRangeText()
    const lists = Array.from({ length: 16 }, () => new DateRangeList(text))
    let formatted = 0
    const scte35Cmd = Object.assign(Buffer.alloc(4096), {
      toString: () => {
        formatted++
        return 'FC'
      },
    })
    const [first, second] = [range(0, { scte35Cmd }), range(1, { scte35Cmd: SECTION })]
    for (const dateRange of [first, second]) {
      for (const list of lists) list.add(dateRange, 0)
      t.equal(new Set(lists.map((list) => list.text)).size, 1)
    }
    t.equal(formatted, 1)
  },
)
