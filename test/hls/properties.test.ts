/**
 * Whatever a demuxer may put out, in any order: the rules of HLS hold, and memory is bounded.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { LivePresentation } from '../../src/hls/live-presentation.ts'
import { SegmentCache } from '../../src/hls/segment-cache.ts'
import { Segmenter, type SegmenterOutput } from '../../src/hls/segmenter.ts'
import type { DemuxerOutput } from '../../src/mpegts/demuxer-output.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { PlaylistRules } from '../support/playlist-rules.ts'
import { tsPacket } from '../mpegts/ts-builder.ts'
import { continuityFaults, readPackets, readPat, readPmt } from '../support/ts-reader.ts'
import { AUDIO, VIDEO, picture, program, programOf, sound, unit } from './source.ts'

const SEC = 90_000
const MAX_SEGMENT_BYTES = 40_000

/** Mostly a frame, now and then anything. */
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
      tracks: fc.constantFrom([VIDEO, AUDIO], [VIDEO], [AUDIO], []),
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
})

t.test('any sequence of units makes playlists and segments in order', async (t) => {
  fc.assert(
    fc.property(settings, fc.array(event, { maxLength: 250, size: 'max' }), (chosen, events) => {
      const { maxSegmentSec, playlistSegments, maxBytes } = chosen
      const segmenter = new Segmenter({
        epoch: 'e',
        segmentSec: maxSegmentSec * chosen.fraction,
        maxSegmentSec,
        maxSegmentBytes: MAX_SEGMENT_BYTES,
      })
      const cache = new SegmentCache({ maxBytes })
      const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments })
      const rules = new PlaylistRules()
      const times = { video: 100 * SEC, audio: 100 * SEC, wallMs: 1e12, nowMs: 0 }
      const all: Buffer[] = []
      let carried: string | undefined

      const check = (outputs: readonly SegmenterOutput[]) => {
        for (const output of outputs) {
          if (output.type !== 'segment') continue
          const { segment } = output
          if (segment.bytes.length > MAX_SEGMENT_BYTES) throw new Error('segment too large')
          const packets = readPackets(segment.bytes)
          const [association] = readPat(packets[0]!)
          if (packets[1]!.pid !== association!.pmtPid) throw new Error('no PMT behind the PAT')
          const pids = readPmt(packets[1]!)
            .streams.map(({ pid }) => pid)
            .join()
          if (!segment.discontinuity && carried !== undefined && pids !== carried) {
            throw new Error(`tracks ${carried} became ${pids} without a discontinuity`)
          }
          carried = pids
          all.push(segment.bytes)
          times.nowMs += segment.durationSec * 1000
          presentation.append(segment, times.nowMs)
          checkPlaylist()
        }
      }
      const checkPlaylist = () => {
        const text = presentation.media('playlist.m3u8')!.bytes.toString()
        const broken = [...rules.check(text), ...parseM3u8(text).complaints]
        if (broken.length > 0) throw new Error(`${broken.join('\n')}\n${text}`)
        const listed = text.split('\n')
        for (const [index, line] of listed.entries()) {
          if (!line.startsWith('e-')) continue
          const gap = listed.slice(Math.max(0, index - 4), index).includes('#EXT-X-GAP')
          if (!gap && presentation.segment(line) === undefined) throw new Error(`${line} is gone`)
        }
        const { complaints } = parseM3u8(presentation.multivariant()!.bytes.toString())
        if (complaints.length > 0) throw new Error(complaints.join('\n'))
        if (cache.stats.bytes > maxBytes) throw new Error('the cache exceeds its bound')
      }

      check(segmenter.push(program(programOf(VIDEO, AUDIO)), times.wallMs))
      for (const happened of events) {
        if (happened.type === 'wall') times.wallMs = happened.wallMs
        else if (happened.type === 'discontinuity') check(segmenter.discontinuity(times.wallMs))
        else check(segmenter.push(toOutput(happened, times), times.wallMs))
      }
      check(segmenter.end(times.wallMs))
      presentation.end()
      if (presentation.media('playlist.m3u8') !== undefined) checkPlaylist()
      const faults = continuityFaults(readPackets(Buffer.concat(all)))
      if (faults.length > 0) throw new Error(faults.join('\n'))
    }),
    { numRuns: Number(process.env['HLS_PROPERTY_RUNS'] ?? 60) },
  )
  t.pass('for every seed')
})

type MediaEvent = Exclude<
  typeof event extends fc.Arbitrary<infer Event> ? Event : never,
  { type: 'wall' } | { type: 'discontinuity' }
>

function toOutput(happened: MediaEvent, times: { video: number; audio: number }): DemuxerOutput {
  if (happened.type === 'video') {
    times.video += happened.step
    return unit(picture(times.video, happened))
  }
  if (happened.type === 'audio') {
    times.audio += happened.step * 5
    return unit(sound(times.audio, { damaged: happened.damaged }))
  }
  if (happened.type === 'program') {
    return program(programOf(...happened.tracks), happened.layoutChanged)
  }
  return { type: 'packets', pid: VIDEO.pid, chunks: [tsPacket({ pid: VIDEO.pid })] }
}
