/**
 * Reads the body of a reply within limits, and measures its pauses.
 *
 * @module
 */
import { performance } from 'node:perf_hooks'

export interface ReadBody {
  readonly body: Buffer
  /** Longest time without a byte, from the headers to the end, without the time in which this process was busy. */
  readonly longestPauseMs: number
}

export interface BodyLimits {
  readonly maxBytes: number
  /** Whether the rest of a larger body is dropped; otherwise it is an error. */
  readonly truncates: boolean
  /** Called at each read. */
  readonly onRead: () => void
}

/** A body over its limit. */
export class BodyTooLargeError extends Error {}

export async function readBody(
  stream: ReadableStream<Uint8Array> | null,
  nowMs: () => number,
  { maxBytes, truncates, onRead }: BodyLimits,
): Promise<ReadBody> {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  let longestPauseMs = 0
  const sincePause = pauseMeter(nowMs)
  for await (const chunk of stream ?? []) {
    longestPauseMs = Math.max(longestPauseMs, sincePause())
    onRead()
    sizeBytes += chunk.length
    if (sizeBytes > maxBytes) {
      if (truncates) break
      throw new BodyTooLargeError(`larger than ${Math.round(maxBytes / 1024 / 1024)} MiB`)
    }
    chunks.push(chunk)
  }
  return { body: Buffer.concat(chunks), longestPauseMs: Math.max(longestPauseMs, sincePause()) }
}

/** @returns a function that measures the time since its last call in which the process waited */
function pauseMeter(nowMs: () => number): () => number {
  let atMs = nowMs()
  let usage = performance.eventLoopUtilization()
  return () => {
    const now = nowMs()
    const usageNow = performance.eventLoopUtilization()
    const busyMs = usageNow.active - usage.active
    const pauseMs = Math.max(0, now - atMs - busyMs)
    ;[atMs, usage] = [now, usageNow]
    return pauseMs
  }
}
