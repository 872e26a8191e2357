/**
 * Live stream of the demo clip in real time, without SRT.
 *
 * @module
 */
import { systemClock } from '../../../src/timing/clock.ts'
import { FORMATS } from '../../../src/api/stream-options.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../../src/stream/live-stream.ts'
import type { ContinuedStream } from '../../../src/stream/live-stream-options.ts'
import { PUBLISHER_REPORT } from '../../stream/publisher-report.ts'
import { LoopedClip } from '../../support/looped-clip.ts'

interface Test {
  teardown(close: () => unknown): unknown
}

export interface LiveClipOptions {
  readonly partSec?: number
  readonly segmentSec: number
  readonly playlistSegments: number
  /** Default `e`. */
  readonly epoch?: string
  readonly continued?: ContinuedStream
  /** Media that the stream begins with, in seconds. */
  readonly startSec: number
}

export interface LiveClip {
  readonly stream: LiveStream
  /** Stops the media; the stream stays live. */
  stall(): void
  /** Goes on after `stall`, with all media that would have come meanwhile. */
  resume(): void
}

/** Starts a low-latency stream in both formats that goes on until the test ends. */
export function startLiveClip(t: Test, options: LiveClipOptions): LiveClip {
  const stream = createClipStream(options)
  const publisher = publishClip(t, stream, options.startSec)
  t.teardown(() => stream.stop('api'))
  return { stream, ...publisher }
}

/** @returns a low-latency stream in both formats, without an encoder */
export function createClipStream({
  partSec = 0.2,
  segmentSec,
  playlistSegments,
  epoch = 'e',
  continued,
}: Omit<LiveClipOptions, 'startSec'>): LiveStream {
  return new LiveStream('studio', {
    clock: systemClock,
    cache: new SegmentCache({ maxBytes: 256 * 1024 * 1024 }),
    epoch,
    formats: FORMATS,
    partSec,
    segmentSec,
    maxSegmentSec: 10,
    playlistSegments,
    lingerSec: 60,
    reconnectGraceSec: 120,
    continued,
  })
}

/**
 * Publishes the clip until the test ends.
 *
 * @param startSec  media to begin with, in seconds
 * @returns `stall` stops the media, `resume` goes on; the encoder stays connected
 */
export function publishClip(
  t: Test,
  stream: LiveStream,
  startSec: number,
): Omit<LiveClip, 'stream'> {
  const publication = stream.publish({
    lastPacketUs: 0,
    report: () => PUBLISHER_REPORT,
    close: () => undefined,
  })
  const clip = new LoopedClip()
  let sentSec = 0
  const pushUntil = (sec: number) => {
    while (sentSec < sec) {
      const { bytes, durationSec } = clip.next()
      publication.push(bytes)
      sentSec += durationSec
    }
  }
  pushUntil(startSec)
  const startMs = performance.now()
  let isStalled = false
  const push = () => {
    if (!isStalled) pushUntil(startSec + (performance.now() - startMs) / 1000)
  }
  const timer = setInterval(push, 10)
  t.teardown(() => clearInterval(timer))
  return { stall: () => void (isStalled = true), resume: () => void (isStalled = false) }
}
