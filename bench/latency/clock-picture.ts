/**
 * Video frames that carry the time of their capture in squares, black or white, large enough to survive any encoder.
 *
 *   24 bits of milliseconds │ 8 bits of checksum       in two rows of 16 squares
 *
 * @module
 */

export const WIDTH = 640
export const HEIGHT = 360
const SQUARE = 40
const COLUMNS = WIDTH / SQUARE
const TIME_BITS = 24
const BITS = 32

/** Range of the time, 4.7 hours. */
const TIME_RANGE_MS = 2 ** TIME_BITS

const BLACK = 16
const WHITE = 235
const GRAY = 128
const NOISE = 64
/** Number of different frames below the squares. */
const BACKDROPS = 7

/** Draws frames in YUV 4:2:0, with noise below the squares that gives the encoder work. */
export class ClockPicture {
  readonly #backdrops = Array.from({ length: BACKDROPS }, (_, index) => backdrop(index + 1))
  #drawn = 0

  /** @param timeMs  time of the capture, milliseconds since 1970 */
  draw(timeMs: number): Buffer {
    const frame = Buffer.from(this.#backdrops[this.#drawn++ % BACKDROPS]!)
    const word = wordOf(timeMs)
    for (let bit = 0; bit < BITS; bit++) {
      const left = (bit % COLUMNS) * SQUARE
      const top = Math.floor(bit / COLUMNS) * SQUARE
      for (let y = top; y < top + SQUARE; y++) {
        frame.fill((word >>> bit) & 1 ? WHITE : BLACK, y * WIDTH + left, y * WIDTH + left + SQUARE)
      }
    }
    return frame
  }
}

function wordOf(timeMs: number): number {
  const time = Math.floor(timeMs) % TIME_RANGE_MS
  return time + ((checksum(time) << TIME_BITS) >>> 0)
}

function checksum(time: number): number {
  return ((time + (time >> 8) + (time >> 16)) & 0xff) ^ 0x5a
}

function backdrop(seed: number): Buffer {
  const frame = Buffer.alloc((WIDTH * HEIGHT * 3) / 2, GRAY)
  let state = seed
  for (let at = (BITS / COLUMNS) * SQUARE * WIDTH; at < WIDTH * HEIGHT; at++) {
    state = (state * 1103515245 + 12345) & 0x7fffffff
    frame[at] = GRAY + ((state >> 16) % NOISE)
  }
  return frame
}

/**
 * Script for a page with a video element: collects the delay of every frame on the screen in `measured`, once `measured`
 * was set to an empty list.
 */
export const READER = `{
  const video = document.querySelector('video')
  const canvas = document.createElement('canvas')
  const [width, height, square] = [${WIDTH}, ${(BITS / COLUMNS) * SQUARE}, ${SQUARE}]
  Object.assign(canvas, { width, height })
  const context = canvas.getContext('2d', { willReadFrequently: true })
  const checksum = ${checksum.toString()}

  /** Undefined for a frame without squares. */
  function readTime() {
    context.drawImage(video, 0, 0, width, height, 0, 0, width, height)
    const { data } = context.getImageData(0, 0, width, height)
    let [time, sum] = [0, 0]
    for (let bit = 0; bit < ${BITS}; bit++) {
      const x = ((bit % ${COLUMNS}) + 0.5) * square
      const y = (Math.floor(bit / ${COLUMNS}) + 0.5) * square
      if (data[4 * (y * width + x)] < 128) continue
      if (bit < ${TIME_BITS}) time += 2 ** bit
      else sum += 2 ** (bit - ${TIME_BITS})
    }
    return sum === checksum(time) ? time : undefined
  }

  function read(_now, { expectedDisplayTime }) {
    const capturedMs = readTime()
    const shownMs = Date.now() + Math.max(0, expectedDisplayTime - performance.now())
    const delayMs = (shownMs - (capturedMs ?? NaN) + ${TIME_RANGE_MS}) % ${TIME_RANGE_MS}
    window.measured?.push(delayMs)
    video.requestVideoFrameCallback(read)
  }
  video.requestVideoFrameCallback(read)
  video.addEventListener('waiting', () => window.stalls++)
}`
