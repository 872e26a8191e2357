/**
 * Hand-made access units, for streams that no encoder produces on request.
 *
 * @module
 */

/** Parameter sets of x264, baseline, 320 x 180, 30 frames per second. */
const SPS = Buffer.from('6742c00dda05067e7c0440000003004000000f03c50aa8', 'hex')
const PPS = Buffer.from('68ce0fc8', 'hex')
const START_CODE = Buffer.from([0, 0, 0, 1])

/** Creates an H.264 access unit of about a given size: delimiter, parameter sets if IDR, one slice. */
export function h264AccessUnit({ key, sizeBytes }: { key: boolean; sizeBytes: number }): Buffer {
  const nals = [Buffer.from([0x09, 0xf0])]
  if (key) nals.push(SPS, PPS)
  const slice = Buffer.alloc(Math.max(2, sizeBytes - 40), 0xaa)
  slice[0] = key ? 0x65 : 0x41
  nals.push(slice)
  return Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))
}

/** AAC-LC frames of 48 kHz stereo in ADTS, 21.3 ms each. */
export function adtsFrames(count: number, frameBytes = 64): Buffer {
  const frame = Buffer.alloc(frameBytes, 0x21)
  Buffer.from([0xff, 0xf1, 0x4c, 0x80 | (frameBytes >> 11)]).copy(frame)
  frame[4] = (frameBytes >> 3) & 255
  frame[5] = ((frameBytes & 7) << 5) | 0x1f
  frame[6] = 0xfc
  return Buffer.concat(Array.from({ length: count }, () => frame))
}
