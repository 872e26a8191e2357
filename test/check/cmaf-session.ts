/**
 * What a check of a low-latency stream in CMAF sees: video and audio in renditions of their own, made of a fixture by
 * `src/mp4`, each playlist in one version.
 *
 * @module
 */
import type { Exchange, RequestRole } from '../../src/check/exchange.ts'
import { FragmentWriter } from '../../src/mp4/fragment.ts'
import { encodeInitSegment, timescaleOf } from '../../src/mp4/init-segment.ts'
import type { Sample } from '../../src/mp4/sample.ts'
import { readFixture } from '../mpegts/demux.ts'
import {
  codecStringOf,
  readAudio,
  readVideo,
  unitsOfKind,
  type Samples,
} from '../mp4/fragmented-track.ts'
import { load } from './rules/fixture.ts'
import { ORIGIN } from './session.ts'
import { ChunkMemory } from '../mp4/chunk-memory.ts'

const BASE = `${ORIGIN}/video/studio/`
const START_MS = Date.UTC(2026, 0, 1)

/** Fifteen frames a second, with a key frame each second. */
const FRAMES_PER_PART = 3
const PARTS_PER_SEGMENT = 5

/** A part of video, and one audio frame that may lie over its end. */
export const PART_TARGET_SEC = 0.2232

/** Segments whose parts are listed and loaded, at the end. */
const SEGMENTS_WITH_PARTS = 3

/** Index of the first part that is listed. */
export const FIRST_PART = 35

const CLIP = readFixture('two-languages')
const VIDEO = readVideo(unitsOfKind(CLIP, 'video'), 'h264')
const AUDIO = readAudio(unitsOfKind(CLIP, 'audio'), { codec: 'aac' })

type AnySample = Sample<Samples[number]['format']>

export interface CmafOptions {
  /** Replaces samples of video; `index` counts them. */
  readonly editVideo?: (sample: AnySample, index: number) => AnySample
}

/** Media of a rendition. */
interface Rendition {
  readonly name: string
  readonly letter: string
  readonly init: Buffer
  readonly segments: readonly (readonly Part[])[]
}

interface Part {
  readonly bytes: Buffer
  readonly startSec: number
  readonly durationSec: number
  readonly independent: boolean
}

/** Multivariant playlist, then each rendition: its playlist, its init segment, and its segments behind their parts. */
export function recordCmaf({ editVideo = (sample) => sample }: CmafOptions = {}): Exchange[] {
  const ends = VIDEO.filter((_, index) => index > 0 && index % FRAMES_PER_PART === 0)
  const renditions = [
    createRendition('cmaf-video-1', 'v1', VIDEO.map(editVideo), ends),
    createRendition('cmaf-audio-1', 'a1', AUDIO, ends),
  ]
  const codecs = [VIDEO, AUDIO].map(([sample]) => codecStringOf(sample!.format)).join()
  const multivariant = [
    '#EXTM3U',
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="1",URI="cmaf-audio-1.m3u8"',
    `#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="${codecs}",RESOLUTION=160x90,FRAME-RATE=15.000,AUDIO="a",CLOSED-CAPTIONS=NONE`,
    'cmaf-video-1.m3u8\n',
  ].join('\n')
  return [
    load(multivariant, 10, { role: 'multivariant', url: `${BASE}master.m3u8` }),
    ...renditions.map((rendition) =>
      load(playlistOf(rendition), 10, { url: `${BASE}${rendition.name}.m3u8` }),
    ),
    ...renditions.flatMap(loadMedia),
  ]
}

/** @param ends  samples of video that start parts: samples before their decode times belong to the parts before */
function createRendition(name: string, letter: string, samples: Samples, ends: Samples): Rendition {
  const { format } = samples[0]!
  const ticksPerSec = timescaleOf(format)
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  const parts: Part[] = []
  const end = (untilTicks: number) => {
    const startsSegment = parts.length % PARTS_PER_SEGMENT === 0
    const fragment = writer.end({ untilTicks, startsSegment })!
    const { decodeTicks, durationTicks, independent, chunks } = fragment
    parts.push({
      bytes: Buffer.concat(chunks),
      startSec: decodeTicks / ticksPerSec,
      durationSec: durationTicks / ticksPerSec,
      independent,
    })
  }
  for (const sample of samples) {
    const next = ends[parts.length]
    const isBehind = next && sample.decodeTicks * 90_000 >= next.decodeTicks * ticksPerSec
    if (isBehind === true) end(sample.decodeTicks)
    writer.push(sample)
  }
  const [beforeLast, last] = samples.slice(-2)
  end(2 * last!.decodeTicks - beforeLast!.decodeTicks)
  const segments = Array.from({ length: Math.floor(parts.length / PARTS_PER_SEGMENT) }, (_, msn) =>
    parts.slice(msn * PARTS_PER_SEGMENT, (msn + 1) * PARTS_PER_SEGMENT),
  )
  return { name, letter, init: encodeInitSegment({ id: 1, format }), segments }
}

function playlistOf({ name, letter, segments }: Rendition): string {
  const other = name === 'cmaf-video-1' ? 'cmaf-audio-1' : 'cmaf-video-1'
  const last = `LAST-MSN=${segments.length - 1},LAST-PART=${PARTS_PER_SEGMENT - 1}`
  const originSec = VIDEO[0]!.decodeTicks / 90_000
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:6',
    '#EXT-X-TARGETDURATION:1',
    '#EXT-X-MEDIA-SEQUENCE:0',
    '#EXT-X-DISCONTINUITY-SEQUENCE:0',
    `#EXT-X-PART-INF:PART-TARGET=${PART_TARGET_SEC}`,
    `#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${PART_TARGET_SEC * 3},HOLD-BACK=3`,
    `#EXT-X-MAP:URI="e-${letter}.mp4"`,
    ...segments.flatMap((parts, msn) => [
      `#EXT-X-PROGRAM-DATE-TIME:${new Date(START_MS + Math.round((parts[0]!.startSec - originSec) * 1000)).toISOString()}`,
      ...(msn < segments.length - SEGMENTS_WITH_PARTS
        ? []
        : parts.map(
            ({ durationSec, independent }, index) =>
              `#EXT-X-PART:DURATION=${durationSec.toFixed(5)},URI="e-${letter}-p${msn * PARTS_PER_SEGMENT + index}.m4s"${independent ? ',INDEPENDENT=YES' : ''}`,
          )),
      `#EXTINF:${sumSec(parts).toFixed(5)},`,
      `e-${letter}-${msn}.m4s`,
    ]),
    `#EXT-X-PRELOAD-HINT:TYPE=PART,URI="e-${letter}-p${segments.length * PARTS_PER_SEGMENT}.m4s"`,
    `#EXT-X-RENDITION-REPORT:URI="${other}.m3u8",${last}\n`,
  ].join('\n')
}

function sumSec(parts: readonly Part[]): number {
  return parts.reduce((sum, { durationSec }) => sum + durationSec, 0)
}

function loadMedia({ name, letter, init, segments }: Rendition): Exchange[] {
  const playlistUrl = `${BASE}${name}.m3u8`
  const request = (role: RequestRole, file: string, body: Buffer): Exchange => {
    const url = BASE + file
    const { reply, ...exchange } = load('', 10, { role, url, playlistUrl })
    const type = letter === 'v1' ? 'video/mp4' : 'audio/mp4'
    const headers = { ...reply!.headers, 'content-type': type, 'cache-control': 'max-age=60' }
    return { ...exchange, reply: { ...reply!, url, headers, body } }
  }
  return [
    request('init', `e-${letter}.mp4`, init),
    ...segments.flatMap((parts, msn) => [
      ...(msn < segments.length - SEGMENTS_WITH_PARTS
        ? []
        : parts.map(({ bytes }, index) =>
            request('part', `e-${letter}-p${msn * PARTS_PER_SEGMENT + index}.m4s`, bytes),
          )),
      request('segment', `e-${letter}-${msn}.m4s`, Buffer.concat(parts.map(({ bytes }) => bytes))),
    ]),
  ]
}
