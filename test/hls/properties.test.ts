/**
 * Arbitrary demuxer outputs in any order: the rules of HLS hold, and memory is bounded.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { LivePresentation } from '../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { Packager, type PackagerOutput } from '../../src/hls/packager.ts'
import { PSI_BYTES } from '../../src/mpegts/mux/program-tables.ts'
import {
  formatOf,
  isCmafRendition,
  playlistUri,
  type Format,
  type RenditionName,
} from '../../src/hls/file-names.ts'
import { readSamples } from '../mp4/box-tree.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import type { Track } from '../../src/mpegts/track.ts'
import type { DemuxerOutput } from '../../src/mpegts/demux/demuxer.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { tsPacket } from '../mpegts/ts-builder.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { continuityFaults, readPackets, readPat, readPmt } from '../support/ts-reader.ts'
import { AUDIO, VIDEO, moved, videoUnit, program, programOf, audioUnit, unit } from './source.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

const SEC = 90_000
const MAX_SEGMENT_BYTES = 40_000

/** Two audio frames: EXTINF of audio in CMAF is that of whole frames. */
const MAX_OFF_SEC = 0.043

const SMALL: Track = { ...VIDEO, pid: 260 }
const FRENCH: Track = { ...AUDIO, pid: 261, language: 'fra' }

/** Random output, mostly a frame. */
const step = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(3000, 3003, 1500) },
  { weight: 4, arbitrary: fc.integer({ min: -3 * SEC, max: 4 * SEC }) },
  { weight: 1, arbitrary: fc.integer({ min: -(2 ** 34), max: 2 ** 34 }) },
)

const event = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      type: fc.constant('video' as const),
      tracks: fc.constantFrom([VIDEO], [SMALL], [VIDEO, SMALL], [SMALL, VIDEO]),
      step,
      key: fc.boolean(),
      damaged: fc.integer({ min: 0, max: 15 }).map((value) => value === 0),
      reorderTicks: fc.constantFrom(0, 0, 3000, 6000, -3000, 2 * SEC),
      sizeBytes: fc.constantFrom(100, 400, 3000, 60_000),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      type: fc.constant('audio' as const),
      tracks: fc.constantFrom([AUDIO], [FRENCH], [AUDIO, FRENCH]),
      step,
      damaged: fc.integer({ min: 0, max: 15 }).map((value) => value === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('clock' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('discontinuity' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('program' as const),
      tracks: fc.constantFrom(
        [VIDEO, AUDIO, SMALL, FRENCH],
        [VIDEO, AUDIO],
        [VIDEO, SMALL, FRENCH],
        [VIDEO],
        [AUDIO, FRENCH],
        [AUDIO],
        [],
      ),
      layoutChanged: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('wall' as const),
      wallMs: fc.integer({ min: 0, max: 4e12 }),
    }),
  },
)

const settings = fc.record({
  maxSegmentSec: fc.integer({ min: 1, max: 10 }),
  fraction: fc.double({ min: 0.05, max: 1, noNaN: true }),
  playlistSegments: fc.integer({ min: 1, max: 6 }),
  maxBytes: fc.constantFrom(50_000, 200_000, 10_000_000),
  partSec: fc.constantFrom(undefined, 0.1, 0.5),
  formats: fc.constantFrom<readonly Format[]>(['ts'], ['ts', 'cmaf'], ['cmaf'], ['ts', 'cmaf']),
})

/** What all renditions say about a segment, by its number: the first one that has it decides. */
type Rows = Map<number, Segment>

/** The segments of one rendition, in their order. */
class RenditionChecks {
  readonly bytes: Buffer[] = []
  next: number | undefined
  #carried: string | undefined
  /** Time since the previous media. */
  #discontinuity = false
  #map: string | undefined
  #endTicks = 0

  check(segment: Segment, rows: Rows): void {
    const { rendition, mediaSequence, bytes, discontinuity, uri } = segment
    if (mediaSequence !== (this.next ?? mediaSequence)) throw new Error(`${uri} is out of order`)
    this.next = mediaSequence + 1
    const row = rows.get(mediaSequence) ?? segment
    rows.set(mediaSequence, row)
    const timeOf = (each: Segment) => [each.discontinuity, each.discontinuitySequence].join()
    if (timeOf(row) !== timeOf(segment)) throw new Error(`${uri} is out of step`)
    const isExact = ![row, segment].some((each) => each.rendition.startsWith('cmaf-audio'))
    const maxOffSec = isExact ? 0 : MAX_OFF_SEC
    const offSec = Math.abs(segment.durationSec - row.durationSec)
    if (offSec > maxOffSec) throw new Error(`${uri} lasts ${offSec} s more or less`)
    const offMs = Math.abs(segment.programDateTimeMs - row.programDateTimeMs)
    if (offMs > maxOffSec * 1000) throw new Error(`${uri} is dated ${offMs} ms off`)
    this.#discontinuity ||= discontinuity
    if (isCmafRendition(rendition)) {
      this.#checkFragments(segment)
      return
    }
    if (bytes.length === 0 && rendition !== 'main') return
    const room = rendition === 'main' ? MAX_SEGMENT_BYTES : 2 * MAX_SEGMENT_BYTES + PSI_BYTES
    if (bytes.length > room) throw new Error('segment too large')
    const packets = readPackets(bytes)
    const [association] = readPat(packets[0]!)
    if (packets[1]!.pid !== association!.pmtPid) throw new Error('no PMT behind the PAT')
    const pids = readPmt(packets[1]!)
      .streams.map(({ pid }) => pid)
      .join()
    if (!this.#discontinuity && this.bytes.length > 0 && pids !== this.#carried) {
      throw new Error(`tracks ${this.#carried} became ${pids} without a discontinuity`)
    }
    this.#carried = pids
    this.#discontinuity = false
    this.bytes.push(bytes)
  }

  /** Checks that samples do not overlap, and that the format stays until a discontinuity. */
  #checkFragments({ uri, bytes, map }: Segment): void {
    if (bytes.length > 2 * MAX_SEGMENT_BYTES + PSI_BYTES) throw new Error('segment too large')
    if (bytes.length === 0) return
    if (this.#discontinuity) this.#endTicks = 0
    else if (map?.uri !== (this.#map ?? map?.uri)) throw new Error(`${uri} has another format`)
    this.#map = map?.uri
    this.#discontinuity = false
    for (const { decodeTicks, durationTicks } of readSamples(bytes)) {
      if (decodeTicks < this.#endTicks) throw new Error(`${uri} overlaps at ${decodeTicks}`)
      this.#endTicks = decodeTicks + durationTicks
    }
  }
}

/**
 * Runs of seed 1 that failed once: a second video that lags by a segment overlapped what was published, and audio that
 * alone jumps ahead was listed up to its next frame.
 */
const FAILED = ['34', '130', '560']

t.test('any sequence of units makes playlists and segments in order', async (t) => {
  const property = fc.property(
    settings,
    fc.array(event, { maxLength: 250, size: 'max' }),
    (chosen, events) => {
      const { maxSegmentSec, playlistSegments, maxBytes, partSec, formats } = chosen
      const packager = new Packager({
        epoch: 'e',
        segmentSec: maxSegmentSec * chosen.fraction,
        maxSegmentSec,
        maxSegmentBytes: MAX_SEGMENT_BYTES,
        partSec,
        formats,
      })
      const cache = new SegmentCache({ maxBytes })
      const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments, formats })
      const times = { video: 100 * SEC, audio: 100 * SEC, wallMs: 1e12, nowMs: 0 }
      const renditions = new Map<RenditionName, RenditionChecks>()
      const rows: Rows = new Map()
      // Key frames come at random, and so do tracks.
      const except = ['INDEPENDENT_MISSING', 'VERSION_TOO_HIGH']
      const judges = { ts: new StreamJudge({ except }), cmaf: new StreamJudge({ except }) }
      const isFirst = (rendition: RenditionName) => [...renditions.keys()][0] === rendition

      const check = (outputs: readonly PackagerOutput[]) => {
        for (const output of outputs) {
          if (output.type === 'renditions') presentation.setRenditions(output.renditions)
          if (output.type === 'target') {
            presentation.setTarget(output.targetSec, output.partTargetSec)
            for (const name of renditions.keys()) checkPlaylist(name)
          }
          if (output.type === 'part') presentation.appendPart(output.part)
          if (output.type !== 'segment') continue
          const { segment } = output
          const checks = renditions.get(segment.rendition) ?? new RenditionChecks()
          renditions.set(segment.rendition, checks)
          checks.check(segment, rows)
          if (isFirst(segment.rendition)) times.nowMs += segment.durationSec * 1000
          presentation.append(segment, times.nowMs)
          checkPlaylist(segment.rendition)
        }
      }
      const checkPlaylist = (name: RenditionName) => {
        const uri = playlistUri(name)
        const text = presentation.files.get(uri)?.chunks.join('')
        if (text === undefined && !presentation.playable) return
        if (text === undefined) throw new Error(`no ${uri}`)
        const judge = judges[formatOf(name)]
        const broken = [...judge.playlist(uri, text), ...parseM3u8(text).complaints]
        if (broken.length > 0) throw new Error(`${broken.join('\n')}\n${text}`)
        const listed = text.split('\n')
        for (const [index, line] of listed.entries()) {
          if (!line.startsWith('e-')) continue
          const previous = listed.findLastIndex((each, at) => at < index && each.startsWith('e-'))
          const gap = listed.slice(previous + 1, index).includes('#EXT-X-GAP')
          if (!gap && presentation.files.get(line) === undefined) throw new Error(`${line} is gone`)
        }
        const master = formatOf(name) === 'cmaf' || formats.length === 1 ? 'master' : 'ts'
        const multivariant = presentation.files.get(`${master}.m3u8`)?.chunks.join('')
        if (multivariant !== undefined) {
          const complaints = [
            ...parseM3u8(multivariant).complaints,
            ...judge.multivariant(multivariant),
          ]
          if (complaints.length > 0) throw new Error(complaints.join('\n'))
        }
        if (cache.stats.bytes > maxBytes) throw new Error('the cache exceeds its bound')
      }

      check(packager.push(program(programOf(VIDEO, AUDIO, SMALL, FRENCH)), times.wallMs))
      for (const happened of events) {
        if (happened.type === 'wall') times.wallMs = happened.wallMs
        else if (happened.type === 'discontinuity') check(packager.discontinuity())
        else {
          for (const output of toOutputs(happened, times)) {
            check(packager.push(output, times.wallMs))
          }
        }
      }
      check(packager.end())
      presentation.end()
      for (const [name, checks] of renditions) {
        checkPlaylist(name)
        if (checks.next !== [...renditions.values()][0]!.next)
          throw new Error(`${name} fell behind`)
        const faults = continuityFaults(readPackets(Buffer.concat(checks.bytes)))
        if (faults.length > 0) throw new Error(faults.join('\n'))
      }
    },
  )
  for (const path of FAILED) fc.assert(property, { seed: 1, path, numRuns: 1 })
  fc.assert(property, { numRuns: rounds(20, 2000), seed: FIRST_SEED, endOnFailure: true })
  t.pass('for every seed')
})

type MediaEvent = Exclude<
  typeof event extends fc.Arbitrary<infer Event> ? Event : never,
  { type: 'wall' } | { type: 'discontinuity' }
>

function toOutputs(happened: MediaEvent, times: { video: number; audio: number }): DemuxerOutput[] {
  if (happened.type === 'video') {
    times.video += happened.step
    const value = videoUnit(times.video, happened)
    return happened.tracks.map((track) => unit(moved(value, track)))
  }
  if (happened.type === 'audio') {
    times.audio += happened.step * 5
    const value = audioUnit(times.audio, { damaged: happened.damaged })
    return happened.tracks.map((track) => unit(moved(value, track)))
  }
  if (happened.type === 'program') {
    return [program(programOf(...happened.tracks), happened.layoutChanged)]
  }
  return [{ type: 'packets', pid: VIDEO.pid, chunks: [tsPacket({ pid: VIDEO.pid })] }]
}
