/**
 * Worker with the service as a library, which notes when each part is complete.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createServer } from '../../src/index.ts'
import type { Store } from '../support/store.ts'
import { selfUsage } from '../support/usage.ts'
import { answer, readTask } from '../support/worker.ts'
import { nowMs } from './clock.ts'
import { readEdge, type Edge } from './playlist-reader.ts'

export interface ServiceTask {
  readonly partMs: number
  /** Paths of PEM files for HTTPS. */
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly archive?: Store['archive']
}

export interface ServiceAnswers {
  urls(): { readonly srtUrl: string; readonly playlistUrl: string }
  /** Whether the stream has a low-latency playlist. */
  isReady(): boolean
  record(durationMs: number): Promise<ServiceRecord>
}

export interface ServiceRecord {
  /** Parts by number, with the time when the playlist lists them. */
  readonly completeMs: Readonly<Record<number, number>>
  readonly partTargetSec: number
  /** CPU; 1 is one core. */
  readonly cpuShare: number
  readonly maxLoopDelayMs: number
  readonly packets: number
  readonly packetsLost: number
  readonly packetsDropped: number
}

const STREAM_ID = 'bench'
const PLAYLIST = 'cmaf-video-1.m3u8'
const DELAY_SAMPLE_MS = 10
/** What is older than a few segments comes from the archive. */
const REWIND = { dvrSec: 3600, playlistSegments: 3 }

const { partMs, tls, archive } = (await readTask()) as ServiceTask
const server = await createServer({
  ...{ hmacSecret: randomBytes(32).toString('hex'), jwtSecret: randomBytes(32).toString('hex') },
  ...{ logLevel: 'warn', public: { host: '127.0.0.1' } },
  ...{ http: { host: '127.0.0.1', port: 0 }, srt: { host: '127.0.0.1', port: 0 } },
  hls: { partMs, ...(archive !== undefined && REWIND) },
  ...(tls !== undefined && { tls }),
  ...(archive !== undefined && { archive }),
})
const { srtUrl, masterUrl } = await server.startStream({ streamId: STREAM_ID })
const playlistUrl = new URL(PLAYLIST, masterUrl).href
const { files } = server.findStream(STREAM_ID)!

answer<ServiceAnswers>({
  urls: () => ({ srtUrl, playlistUrl }),
  isReady: () => edge() !== undefined,
  record: async (durationMs) => {
    const before = counters()
    const { cpuSec } = selfUsage()
    const delay = monitorEventLoopDelay({ resolution: DELAY_SAMPLE_MS })
    delay.enable()
    const completeMs = await noteParts(AbortSignal.timeout(durationMs))
    delay.disable()
    const after = counters()
    return {
      completeMs,
      partTargetSec: Number(/PART-TARGET=([\d.]+)/.exec(playlist())?.[1]),
      cpuShare: (selfUsage().cpuSec - cpuSec) / (durationMs / 1000),
      maxLoopDelayMs: Math.max(0, delay.max / 1e6 - DELAY_SAMPLE_MS),
      packets: after.packets - before.packets,
      packetsLost: after.lost - before.lost,
      packetsDropped: after.dropped - before.dropped,
    }
  },
})

async function noteParts(signal: AbortSignal): Promise<Record<number, number>> {
  const completeMs: Record<number, number> = {}
  for (;;) {
    const before = edge()!
    if (!(await comes(before.next, signal))) return completeMs
    const atMs = nowMs()
    const { newestPart } = edge()!
    for (let part = before.newestPart + 1; part <= newestPart; part++) completeMs[part] = atMs
  }
}

/** @returns false if the signal aborts before */
function comes(next: Edge['next'], signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const abort = () => {
      forget?.()
      resolve(false)
    }
    const forget = files.wait(PLAYLIST, next, () => {
      signal.removeEventListener('abort', abort)
      resolve(true)
    })
    signal.addEventListener('abort', abort)
  })
}

function counters() {
  const {
    packetsReceived = NaN,
    packetsLost = NaN,
    packetsDropped = NaN,
  } = server.status(STREAM_ID).publisher ?? {}
  return { packets: packetsReceived, lost: packetsLost, dropped: packetsDropped }
}

function edge() {
  return readEdge(playlist())
}

function playlist(): string {
  return Buffer.concat(files.get(PLAYLIST)?.chunks ?? []).toString()
}
