/**
 * Measured process: runs a transport stream file through demuxer or live stream at full speed.
 *
 * @module
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { Demuxer } from '../../src/mpegts/index.ts'
import { PACKET_BYTES } from '../../src/mpegts/packet.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { PublisherReport } from '../../src/api/records.ts'
import { answer, readTask } from '../support/worker.ts'

export interface PipelineTask {
  readonly file: string
}

export interface Footprint {
  /**
   * Bytes copied by any Buffer method per byte of the stream. The PAT and PMT of each segment count too: 0.0007 at
   * 2 Mbit/s, half of what the source sends of them.
   */
  readonly copiedPerByte: number
  /** Heap bytes allocated per packet, without buffers. */
  readonly heapBytesPerPacket: number
  /** Share of the time in garbage collection. */
  readonly gcShare: number
}

export type PipelineAnswers = {
  /** CPU seconds of all threads for the demuxer alone. */
  demux(): number
  /** CPU seconds of all threads from demuxer to playlist. */
  stream(): number
  /** Patches Buffer permanently, so it must be the last question. */
  footprint(): Promise<Footprint>
}

/** Payload of a usual SRT packet. */
const PAYLOAD_BYTES = 7 * PACKET_BYTES
const READ_BYTES = 50 * PAYLOAD_BYTES
const CACHE_BYTES = 512 * 1024 * 1024

const { file } = (await readTask()) as PipelineTask

answer<PipelineAnswers>({
  demux: () => cpuSecOf(demux),
  stream: () => cpuSecOf(() => stream()),
  footprint,
})

function cpuSecOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

function demux(): void {
  const demuxer = new Demuxer()
  forEachPayload((payload) => demuxer.push(payload))
  demuxer.end()
}

/** @returns number of bytes processed */
function stream(onRead?: () => void): number {
  let nowUs = 0
  const live = new LiveStream('bench', {
    clock: { nowUs: () => nowUs, wallMs: () => nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: CACHE_BYTES }),
    ...{ epoch: 'bench', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  let segments = 0
  // Not by the event: memory of segments that listeners were given is never used again.
  const follow = () => {
    const { totals } = live.report()
    nowUs = totals.durationSec * 1e6
    // As a player that requests every version.
    if (totals.segments > segments) live.files.get('playlist.m3u8')
    segments = totals.segments
    onRead?.()
  }
  const publication = live.publish({
    lastPacketUs: 0,
    report: () => ({}) as PublisherReport,
    close: () => undefined,
  })
  const bytes = forEachPayload((payload) => publication.push(payload), follow)
  live.stop('api')
  if (segments === 0) throw new Error('the file made no segment')
  return bytes
}

/** @returns number of bytes read */
function forEachPayload(push: (payload: Buffer) => void, onRead?: () => void): number {
  const descriptor = openSync(file, 'r')
  let bytes = 0
  for (;;) {
    const piece = Buffer.allocUnsafeSlow(READ_BYTES)
    const length = readSync(descriptor, piece)
    if (length === 0) break
    bytes += length
    for (let at = 0; at < length; at += PAYLOAD_BYTES) {
      push(piece.subarray(at, Math.min(at + PAYLOAD_BYTES, length)))
    }
    onRead?.()
  }
  closeSync(descriptor)
  return bytes
}

async function footprint(): Promise<Footprint> {
  let gcMs = 0
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) gcMs += duration
  })
  observer.observe({ entryTypes: ['gc'] })
  const startMs = performance.now()
  stream()
  const lastedMs = performance.now() - startMs
  // The observer is called when the event loop is idle.
  await sleep(10)
  observer.disconnect()
  const collectedMs = gcMs

  const copied = countCopies()
  let heapBytes = 0
  let usedBytes = getHeapStatistics().used_heap_size
  const bytes = stream(() => {
    const nowBytes = getHeapStatistics().used_heap_size
    // A garbage collection in between, once in a few hundred reads, shrinks it.
    heapBytes += Math.max(0, nowBytes - usedBytes)
    usedBytes = nowBytes
  })
  return {
    copiedPerByte: copied() / bytes,
    heapBytesPerPacket: (heapBytes / bytes) * PACKET_BYTES,
    gcShare: collectedMs / lastedMs,
  }
}

/** Patches Buffer to count copied bytes. @returns a function that reads the count */
function countCopies(): () => number {
  let copied = 0
  const { concat } = Buffer
  const { copy } = Buffer.prototype
  const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array
  const { set } = typedArray
  Buffer.concat = (list, length) => {
    const bytes = concat(list, length)
    copied += bytes.length
    return bytes
  }
  Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<typeof copy>) {
    const length = copy.apply(this, args)
    copied += length
    return length
  }
  typedArray.set = function (this: Uint8Array, source, at) {
    copied += source.length
    set.call(this, source, at)
  }
  return () => copied
}
