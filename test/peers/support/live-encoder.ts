/**
 * ffmpeg as a live encoder.
 *
 * @module
 */
import { start, type Program } from '../../support/process.ts'

/** Frame rate of the video, which has a key frame each second. */
export const FRAMES_PER_SEC = 30

/** Options of ffmpeg with which each audio frame has a PES packet of its own. */
export const FINE_AUDIO = ['-pes_payload_size', '0', '-flush_packets', '1']

/**
 * SRT URL for ffmpeg, with 4 s to deliver a packet. After the 120 ms of its default a packet is dropped: where the machine is
 * busy, viewers get damaged frames and discontinuities, and a browser may give up decoding.
 */
export const withLatency = (srtUrl: string): string => `${srtUrl}&latency=4000000`

interface EncoderOptions {
  /** Color of the left half of the video; default: the pattern. */
  readonly color?: string
  /** Duration, after which it ends; default: no end. */
  readonly seconds?: number
  /** Whether each audio frame has a PES packet of its own, as low latency needs it; default: 0.3 s of audio have one. */
  readonly isFine?: boolean
  /** Whether it starts again after an error, such as a connection that a busy machine refuses. */
  readonly retries?: boolean
}

/**
 * Publishes a test pattern with a tone until it is killed or the test ends.
 *
 * @param target  SRT URL, or path of a transport stream file
 * @param size  of the video
 */
export function startEncoder(
  t: Parameters<typeof start>[0],
  target: string,
  size = '320x180',
  { color, seconds, isFine = false, retries = false }: EncoderOptions = {},
): Program {
  const pattern = `testsrc2=size=${size}:rate=${FRAMES_PER_SEC}`
  const half = color === undefined ? '' : `,drawbox=color=${color}:width=iw/2:thickness=fill`
  const source = [
    ...['-re', '-f', 'lavfi', '-i', pattern + half],
    ...['-re', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'],
  ]
  const codecs = [
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'],
    ...['-g', String(FRAMES_PER_SEC), '-c:a', 'aac'],
  ]
  const end = seconds === undefined ? [] : ['-t', String(seconds)]
  const url = target.startsWith('srt:') ? withLatency(target) : target
  const output = [...(isFine ? FINE_AUDIO : []), '-f', 'mpegts', url]
  const args = ['-v', 'error', ...source, ...codecs, ...end, ...output]
  if (!retries) return start(t, 'ffmpeg', args)
  return start(t, 'bash', ['-c', 'until "$@"; do sleep 1; done', 'bash', 'ffmpeg', ...args])
}
