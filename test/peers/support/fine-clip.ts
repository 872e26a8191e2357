/**
 * The demo clip with an audio frame in each PES packet, as low latency needs it: in the clip itself audio PES packets last
 * 0.3 s, and no part is shorter.
 *
 * @module
 */
import { fileURLToPath } from 'node:url'
import { start, type Program } from '../../support/process.ts'
import { FINE_AUDIO, withLatency } from './live-encoder.ts'

const CLIP = fileURLToPath(new URL('../../../fixtures/demo.mpegts', import.meta.url))

/** Publishes the clip in a loop with ffmpeg until the end of the test. */
export function publishFinely(t: Parameters<typeof start>[0], srtUrl: string): Program {
  const input = ['-v', 'error', '-re', '-stream_loop', '-1', '-i', CLIP, '-c', 'copy']
  const output = [...FINE_AUDIO, '-f', 'mpegts']
  return start(t, 'ffmpeg', [...input, ...output, `${withLatency(srtUrl)}&linger=5`])
}
