/**
 * A stream and an encoder without a network: H.264 at 10 frames per second, in GOPs of chosen durations.
 *
 * @module
 */
import type { Format } from '../../src/hls/file-names.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder } from '../../src/stream/publication.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { h264AccessUnit } from '../support/access-units.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

const VIDEO_PID = 0x100
export const FRAMES_PER_SEC = 10
const START_TICKS = 900_000

/** Transport stream with continuous timestamps; each encoder starts at the same time. */
export class GopEncoder {
  readonly #ts = new TsBuilder()
  readonly #framesPerSec: number
  #frames = 0

  constructor(framesPerSec = FRAMES_PER_SEC) {
    this.#framesPerSec = framesPerSec
  }

  /**
   * @param secs  duration of each GOP
   * @param lostKeys  whether their key frames are lost
   */
  encode(secs: readonly number[], { lostKeys = false } = {}): Buffer {
    return Buffer.concat([...this.frames(secs, { lostKeys })])
  }

  /** Yields the packets of each frame. @param secs  duration of each GOP */
  *frames(secs: readonly number[], { lostKeys = false } = {}): Generator<Buffer> {
    this.#ts.program([{ pid: VIDEO_PID, streamType: 0x1b }])
    for (const sec of secs) {
      for (let frame = 0; frame < Math.round(sec * this.#framesPerSec); frame++) {
        const ptsTicks = START_TICKS + this.#frames++ * (90_000 / this.#framesPerSec)
        if (lostKeys && frame === 0) continue
        const payload = h264AccessUnit({ key: frame === 0, sizeBytes: 400 })
        this.#ts.unit(VIDEO_PID, pesPacket(payload, { ptsTicks, length: 'none' }))
        yield Buffer.concat(this.#ts.packets.splice(0))
      }
    }
  }
}

interface StreamOptions {
  readonly segmentSec?: number
  readonly maxSegmentSec?: number
  readonly playlistSegments?: number
  readonly formats?: readonly Format[]
  readonly partSec?: number
}

/** @returns the stream with its clock, and a log of its events */
export function createStream(options: StreamOptions = {}) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 }
  const stream = new LiveStream('studio', {
    ...{ clock, segmentSec: 2, maxSegmentSec: 10, playlistSegments: 4, epoch: 'e' },
    ...options,
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
  })
  const events: string[] = []
  stream.on('live', () => events.push('live'))
  stream.on('interrupted', ({ reason }) => events.push(`interrupted: ${reason}`))
  stream.on('warning', ({ code }) => events.push(`warning: ${code}`))
  return {
    stream,
    events,
    read: (name: string) => stream.files.get(name)?.chunks.join(''),
    playlist: () => stream.files.get('playlist.m3u8')?.chunks.join(''),
    publish: () => stream.publish(createEncoder()),
    pass(sec: number) {
      for (let tick = 0; tick < sec * 4; tick++) {
        nowUs += 250_000
        stream.tick()
      }
    },
  }
}

function createEncoder(): Encoder {
  return { lastPacketUs: 0, report: () => PUBLISHER_REPORT, close() {} }
}

/** @returns EXTINF of each listed segment, in seconds */
export function listDurations(playlist: string | undefined): number[] {
  return [...(playlist ?? '').matchAll(/#EXTINF:([\d.]+),/g)].map(([, sec]) => Number(sec))
}

export function targetOf(playlist: string | undefined): number | undefined {
  const [, target] = /#EXT-X-TARGETDURATION:(\d+)\n/.exec(playlist ?? '') ?? []
  return target === undefined ? undefined : Number(target)
}
