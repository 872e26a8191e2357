/**
 * ffmpeg as a live encoder.
 *
 * @module
 */
import { start, type Program } from '../../support/process.ts'

/** Frame rate of the video, which has a key frame each second. */
export const FRAMES_PER_SEC = 30

/** Publishes a test pattern with a tone until it is killed or the test ends. @param size  of the video */
export function startEncoder(
  t: Parameters<typeof start>[0],
  srtUrl: string,
  size = '640x360',
): Program {
  const source = [
    ...['-re', '-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${FRAMES_PER_SEC}`],
    ...['-re', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'],
  ]
  const codecs = [
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'],
    ...['-g', String(FRAMES_PER_SEC), '-c:a', 'aac'],
  ]
  return start(t, 'ffmpeg', ['-v', 'error', ...source, ...codecs, '-f', 'mpegts', srtUrl])
}
