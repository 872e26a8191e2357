/**
 * Key holders whose streams are large: together they need more memory for segments than there is.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { publish } from '../../../src/cli/publisher/publisher.ts'
import { pesPacket, TsBuilder } from '../../mpegts/ts-builder.ts'
import { h264AccessUnit } from '../../support/access-units.ts'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'

const POLL_MS = 500
const FRAMES_PER_SEC = 25
const FRAME_TICKS = 90_000 / FRAMES_PER_SEC

/** Losses of the attacking streams themselves, in segments. */
export interface LargeStreamsReport {
  readonly streams: number
  /** Shortest window of any of them at the end. */
  readonly leastListed: number
  readonly releasedEarly: number
  readonly gaps: number
  /** Whether their status warned of short memory. */
  readonly warned: boolean
}

/** Publishes in real time until the signal, then stops its streams. */
export async function publishLargeStreams(
  target: Target,
  signal: AbortSignal,
  { streams = 3, megabitsPerSecond = 20 } = {},
): Promise<LargeStreamsReport> {
  const { host, httpPort, hmacSecret } = target
  const call = (name: 'start-stream' | 'status' | 'stop-stream', streamId: string) =>
    callApi(`http://${host}:${httpPort}`, name, { stream_id: streamId }, hmacSecret)
  const ids = Array.from({ length: streams }, (_, n) => `large-${n}`)
  const file = largeVideo(megabitsPerSecond)
  const started = await Promise.all(ids.map((id) => call('start-stream', id)))
  const publishers = started.map(async ({ body }) => {
    const url = `srt://${host}:${target.srtPort}?streamid=${body.data['stream_key']}`
    await publish({ file, url, loop: true, retry: true, signal }).catch(() => undefined)
  })
  const report = { streams, leastListed: Infinity, releasedEarly: 0, gaps: 0, warned: false }
  // Once more when it is over: the figures are those of the end.
  for (let over = false; !over;) {
    over = signal.aborted
    const records = await Promise.all(ids.map(async (id) => (await call('status', id)).body.data)) // prettier-ignore
    const playlists = records.map((record) => record['playlist'] as Record<string, number>)
    const total = (name: string) => playlists.reduce((sum, each) => sum + (each[name] ?? 0), 0)
    report.leastListed = Math.min(...playlists.map((each) => each['listed_segments'] ?? 0))
    report.releasedEarly = total('released_early')
    report.gaps = total('gaps')
    report.warned ||= records.some(({ warnings }) =>
      (warnings as { code: string }[]).some(({ code }) => code === 'CACHE_TOO_SMALL'),
    )
    if (!over) await sleep(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
  await Promise.all(publishers)
  await Promise.all(ids.map((id) => call('stop-stream', id)))
  return report
}

/** A second of video that begins with a key frame. */
export function largeVideo(megabitsPerSecond: number): Buffer {
  const sizeBytes = (megabitsPerSecond * 1e6) / 8 / FRAMES_PER_SEC
  const ts = new TsBuilder()
  for (let frame = 0; frame < FRAMES_PER_SEC; frame++) {
    if (frame % 5 === 0) ts.program([{ pid: 0x100, streamType: 0x1b }])
    const ticks = frame * FRAME_TICKS
    // ISO/IEC 13818-1 2.4.3.5: 33 bits, 6 reserved, 9 of the extension.
    const pcr = Buffer.alloc(6)
    pcr.writeUIntBE(ticks * 2 ** 15, 0, 6)
    const unit = h264AccessUnit({ key: frame === 0, sizeBytes })
    const pes = pesPacket(unit, { ptsTicks: ticks + 2 * FRAME_TICKS, length: 'none' })
    ts.unit(0x100, pes, { adaptationFlags: 0x10, adaptation: pcr })
  }
  return ts.bytes
}
