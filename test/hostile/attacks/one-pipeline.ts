/**
 * One connection that sends thousands of requests at once: to read all replies, or none.
 *
 * @module
 */
import type { Target } from '../target.ts'
import { openConnections, pause } from './raw-connection.ts'

export interface OnePipeline {
  readonly requests: number
  readonly path: string
  /** Called when all requests are answered. */
  readonly onAnswered?: () => void
}

export interface OnePipelineFigures {
  /** Replies to the connection that reads. */
  readonly answered: number
  /** Time until all requests are answered, in milliseconds; 0 if they were not. */
  readonly durationMs: number
  /** Bytes that the other connection took into its buffers. */
  readonly unreadBytes: number
}

const STATUS_LINE = Buffer.from('HTTP/1.1 ')

/** Reads the replies of one pipeline, beside another that stays unread; both stay open until the signal aborts. */
export async function sendOnePipeline(
  target: Target,
  signal: AbortSignal,
  { requests, path, onAnswered }: OnePipeline,
): Promise<OnePipelineFigures> {
  const pipeline = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requests))
  const [reading, unread] = await openConnections(target, 2, signal)
  const startMs = performance.now()
  reading!.write(pipeline)
  unread!.write(pipeline)
  let answered = 0
  let rest = Buffer.alloc(0)
  let durationMs = 0
  reading!.on('data', (bytes: Buffer) => {
    const text = Buffer.concat([rest, bytes])
    let at = 0
    for (let found = text.indexOf(STATUS_LINE); found !== -1;) {
      answered++
      at = found + STATUS_LINE.length
      found = text.indexOf(STATUS_LINE, at)
    }
    rest = text.subarray(Math.max(at, text.length - STATUS_LINE.length + 1))
    if (answered < requests || durationMs > 0) return
    durationMs = performance.now() - startMs
    onAnswered?.()
  })
  while (!signal.aborted) await pause(100, signal)
  return { answered, durationMs: Math.round(durationMs), unreadBytes: unread!.bytesRead }
}
