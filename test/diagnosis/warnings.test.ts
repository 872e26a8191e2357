/**
 * Every message has three sentences and at most 160 characters, and docs/troubleshooting.md has a row for each code.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { WARNINGS, type WarningFact, type WarningCode } from '../../src/diagnosis/warnings.ts'
import type { Track } from '../../src/mpegts/track.ts'

const CODES = Object.keys(WARNINGS) as WarningCode[]

const MAX_CHARACTERS = 160

/** Larger than whatever is counted. */
const HUGE = Number.MAX_SAFE_INTEGER
/** Larger than whatever is measured: a day, in seconds and in milliseconds; terabits a second. */
const [DAY_SEC, DAY_MS, BPS] = [86_400.123, 86_400_123, 1.234e12]

const events = { count: HUGE, spanSec: 30 }
const programNumbers = Array.from({ length: 200 }, (_, index) => 65_535 - index)
const track: Track = {
  ...{ pid: 8191, streamType: 0x06, kind: 'audio', codec: 'unknown' },
  ...{ descriptors: Buffer.alloc(0), label: 'MPEG-4 Part 2 video' },
}
const tracks = Array.from({ length: 200 }, () => track)

const { label: _, ...unlabeled } = track
const videos = Array.from({ length: 8 }, (): Track => ({
  ...unlabeled,
  kind: 'video',
  codec: 'h265',
}))

const losses = {
  ...events,
  ...{ sent: HUGE, lost: HUGE, latencyMs: 8000, rttMs: DAY_MS, bitrateBps: BPS },
}

/** Figures that make the message of each warning longest. */
const LARGEST: { readonly [Code in WarningCode]: readonly Omit<FactOf<Code>, 'code'>[] } = {
  PULL_FAILING: [{ remote: `${'a'.repeat(253)}:65535`, reason: 'PULL_ALLOW forbids it' }],
  PUSH_FAILING: [{ remote: `${'a'.repeat(253)}:65535`, reason: 'PULL_ALLOW forbids it' }],
  FAILED_OVER: [
    { wanted: 'backup', onAir: 'main', isConnected: false },
    { wanted: 'backup', onAir: 'main', isConnected: true },
  ],
  STANDBY_GONE: [{ source: 'backup' }],
  STANDBY_LOSES: [{ source: 'backup', ...losses }],
  SOURCES_DIFFER: [
    {
      ...{ source: 'backup', has: 'h264 3840x2160 aac 44.1 kHz 2ch' },
      ...{ onAir: 'main', onAirHas: 'h264 3840x2160 aac 48 kHz 2ch' },
    },
  ],
  ARCHIVE_BEHIND: [{ lagSec: DAY_SEC }],
  ARCHIVE_GAPS: [{ gapSec: DAY_SEC }],
  LINE_GONE: [{ gone: 7, lines: 8 }],
  KEY_EXPIRING: [{ leftSec: 600 }, { leftSec: -1 }],
  NO_PAT: [{}],
  NO_PMT: [{ programNumbers }, { programNumbers: [7] }],
  PROGRAM_NOT_FOUND: [
    { wanted: 65_535, programNumbers },
    { wanted: 5, programNumbers: [] },
  ],
  NO_MEDIA: [{ silentSec: DAY_SEC }],
  PSI_TOO_RARE: [{ tables: 0, playedSec: DAY_SEC }],
  CONTINUITY_ERRORS: [events],
  TRANSPORT_ERRORS: [events],
  SCRAMBLED: [events],
  AV_SKEW: [
    { offsetSec: 9.87, startOffsetSec: 0 },
    { offsetSec: -9.87, startOffsetSec: 4 },
    { offsetSec: 0, startOffsetSec: 4.98 },
    { offsetSec: 0, startOffsetSec: -4.98 },
  ],
  AV_DRIFT: [{ driftSec: 9.87 }, { driftSec: -9.87 }],
  PTS_GAPS: [{ ...events, missingSec: DAY_SEC }],
  DTS_REPEATED: [events],
  PTS_BEFORE_DTS: [events],
  FRAME_RATE_ODD: [{ measured: HUGE, announced: HUGE }],
  NOT_REAL_TIME: [{ rate: HUGE }, { rate: 0.123 }],
  CLOCK_DRIFT: [{ ppm: 99_999.9 }, { ppm: -99_999.9 }],
  GOP_IRREGULAR: [{ shortSec: 59.87, longSec: 59.98, segmentSec: 2 }],
  OPEN_GOP: [{ openGops: HUGE }],
  INTRA_REFRESH: [events],
  CACHE_TOO_SMALL: [
    {
      listed: 999,
      wanted: 1000,
      cut: HUGE,
      released: HUGE,
      gaps: HUGE,
      short: true,
      advisedBytes: HUGE,
    },
    {
      listed: 999,
      wanted: 1000,
      cut: HUGE,
      released: HUGE,
      gaps: 0,
      short: true,
      advisedBytes: HUGE,
    },
    { listed: 999, wanted: 1000, cut: HUGE, released: 0, gaps: 0, short: true, advisedBytes: HUGE },
  ],
  GOP_TOO_LONG: [{ gopSec: DAY_SEC, limitSec: 4, targetSec: 60 }],
  SEGMENT_TOO_LARGE: [{ maxBytes: HUGE, targetSec: 60 }],
  NO_KEY_FRAME: [{ awaitedSec: DAY_SEC }],
  TIMESTAMP_JUMP: [{ jumpSec: DAY_SEC }, { jumpSec: -DAY_SEC }],
  SPLICE_MISSED: [{ points: HUGE }],
  TOO_MANY_SPLICES: [{ points: HUGE }],
  AUDIO_OUT_OF_STEP: [{ targetSec: 60 }],
  AUDIO_REALIGNED: [{ shiftSec: -DAY_SEC }],
  TRACK_SILENT: [{ track }, { track, isHeld: true }],
  VARIANTS_NOT_ALIGNED: [{ variants: 8, targetSec: 60 }],
  TRACKS_NOT_IN_CMAF: [{ tracks }],
  PARAMETER_SETS_VARY: [{ tracks: videos }],
  TRACKS_LEFT_OUT: [
    { tracks, tooMany: false },
    { tracks, tooMany: true },
  ],
  AUDIO_CODECS_DIFFER: [{ tracks }],
  AUDIO_GONE: [{}],
  AUDIO_TOO_LATE: [{}],
  LATENCY_TOO_LOW: [{ latencyMs: 8000, rttMs: DAY_MS, steadyRttMs: DAY_MS }],
  PACKETS_UNDECRYPTABLE: [events],
  WINDOW_OVERFLOW: [{ ...events, latencyMs: 8000, bitrateBps: BPS }],
  LOSSES_NOT_REPAIRED: [losses],
  BITRATE_HIGH: [{ meanBps: BPS, maxBps: BPS }],
  BITRATE_EXCEEDED: [{ meanBps: BPS, maxBps: BPS }],
  INGEST_TOO_COSTLY: [{ dropped: HUGE }],
}

type FactOf<Code> = Extract<WarningFact, { readonly code: Code }>

t.test('a message has three sentences and at most 160 characters', async (t) => {
  for (const code of CODES) {
    for (const figures of LARGEST[code]) {
      const message = (WARNINGS[code].message as (figures: object) => string)(figures)
      t.comment(`${message.length} ${message}`)
      t.ok(message.length <= MAX_CHARACTERS, `${code} has ${message.length} characters`)
      const sentences = message.split(/(?<=\.) (?=[A-Z])/)
      t.equal(sentences.length, 3, `${code} has three sentences`)
      t.ok(
        sentences.every((sentence) => /^[A-Z0-9].*[^.]\.$/.test(sentence)),
        code,
      )
      t.match(sentences[1], /[Vv]iewers/, `${code} says what viewers see`)
    }
  }
})

t.test('a warning is explained by warnings of the table', async (t) => {
  for (const { unless = [] } of Object.values(WARNINGS)) {
    t.ok(unless.every((code) => code in WARNINGS))
  }
})

t.test('docs/troubleshooting.md has a row for each warning, with what to do', async (t) => {
  const page = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8')
  const sections = page.split(/^## /m).filter((section) => /^.* has a warning\n/.test(section))
  const rows = sections.flatMap((section) => [...section.matchAll(/^\| `([A-Z_]+)` .*$/gm)])
  t.strictSame(rows.map(([, code]) => code!).toSorted(), CODES.toSorted())
  for (const [row] of rows) {
    const cells = row.split(/(?<!\\)\|/).map((cell) => cell.trim())
    t.ok(cells.length === 5 && cells.slice(1, 4).every((cell) => cell !== ''), row.slice(0, 40))
  }
})
