/**
 * The newest key frame of each stream that is in view, decoded by the browser: one at a time, each again after 10 s.
 *
 * @module
 */
import type HlsModule from 'hls.js'
import { make } from './dom.ts'

/** Loaded with the first preview. */
declare const Hls: typeof HlsModule

const LIBRARY = 'assets/hls.min.js'

const INTERVAL_MS = 10_000

/** Time limit for loading and decoding a frame. */
const MAX_DRAWING_MS = 5000

interface Preview {
  readonly id: string
  isInView: boolean
  askedMs: number
  drawnMs?: number
  isLast: boolean
}

/** A canvas for a preview; a screen reader passes over it. */
export function createPreview(): HTMLCanvasElement {
  const canvas = make('canvas', { className: 'preview', width: 320, height: 180, hidden: true })
  canvas.setAttribute('aria-hidden', 'true')
  return canvas
}

/** Calling order: `add` canvases, `refresh` about once a second, `remove`. */
export class Previews {
  readonly #previews = new Map<Element, Preview>()
  readonly #observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const preview = this.#previews.get(target)
      if (preview !== undefined) preview.isInView = isIntersecting
    }
  })
  #library: Promise<void> | undefined
  #isDrawing = false

  add(canvas: HTMLCanvasElement, id: string): void {
    canvas.getContext('2d')!.clearRect(0, 0, canvas.width, canvas.height)
    this.#previews.set(canvas, { id, isInView: false, askedMs: -Infinity, isLast: false })
    this.#observer.observe(canvas)
  }

  remove(canvas: HTMLCanvasElement): void {
    this.#previews.delete(canvas)
    this.#observer.unobserve(canvas)
  }

  /** Keeps the frame that is drawn, or the next one, until there is more to come. */
  keepLast(canvas: HTMLCanvasElement, isLast: boolean): void {
    const preview = this.#previews.get(canvas)
    if (preview !== undefined) preview.isLast = isLast
  }

  /** When the frame was drawn; undefined without one. */
  drawnMs(canvas: HTMLCanvasElement): number | undefined {
    return this.#previews.get(canvas)?.drawnMs
  }

  /** Draws the stream that has waited for longest. A hidden canvas is not in view. */
  refresh(nowMs: number): void {
    if (this.#isDrawing || document.hidden) return
    const due = [...this.#previews.values()]
      .filter(({ isInView, askedMs }) => isInView && nowMs - askedMs >= INTERVAL_MS)
      .filter(({ isLast, drawnMs }) => !isLast || drawnMs === undefined)
      .toSorted((one, other) => one.askedMs - other.askedMs)
    if (due[0] !== undefined) void this.#draw(due[0].id, nowMs)
  }

  async #draw(id: string, nowMs: number): Promise<void> {
    this.#isDrawing = true
    for (const preview of this.#previews.values()) if (preview.id === id) preview.askedMs = nowMs
    try {
      this.#library ??= loadLibrary()
      await this.#library
      await withKeyFrame(new URL(`streams/${id}/preview.ts`, location.href), (video) => {
        for (const [canvas, preview] of this.#previews) {
          if (preview.id !== id) continue
          paint(canvas as HTMLCanvasElement, video)
          preview.drawnMs = nowMs
        }
      })
    } catch {
      // There is no key frame yet, or the browser does not decode it.
    } finally {
      this.#isDrawing = false
    }
    this.refresh(nowMs)
  }
}

function loadLibrary(): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = make('script', { src: LIBRARY })
    script.addEventListener('load', () => resolve())
    script.addEventListener('error', () => reject(new Error(LIBRARY)))
    document.head.append(script)
  })
}

/** Calls `use` with a video that shows the frame, in no document. */
async function withKeyFrame(url: URL, use: (video: HTMLVideoElement) => void): Promise<void> {
  // A playlist of one segment.
  const text = `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${url.href}\n#EXT-X-ENDLIST`
  const playlist = URL.createObjectURL(new Blob([text], { type: 'application/vnd.apple.mpegurl' }))
  const video = make('video', { muted: true })
  const hls = new Hls({ enableWorker: false })
  try {
    await new Promise<void>((resolve, reject) => {
      setTimeout(() => reject(new Error('timeout')), MAX_DRAWING_MS)
      hls.on(Hls.Events.ERROR, (_event, { fatal, type, details }) => {
        if (fatal || type === Hls.ErrorTypes.NETWORK_ERROR) reject(new Error(details))
      })
      hls.on(Hls.Events.FRAG_BUFFERED, () => {
        video.currentTime = video.buffered.start(0)
      })
      video.addEventListener('seeked', () => resolve())
      hls.loadSource(playlist)
      hls.attachMedia(video)
    })
    use(video)
  } finally {
    hls.destroy()
    URL.revokeObjectURL(playlist)
  }
}

/** Draws the frame in its own shape, in the middle. */
function paint(canvas: HTMLCanvasElement, video: HTMLVideoElement): void {
  const { width, height } = canvas
  const { videoWidth, videoHeight } = video
  const scale = Math.min(width / videoWidth, height / videoHeight)
  const [w, h] = [videoWidth * scale, videoHeight * scale]
  const context = canvas.getContext('2d')!
  context.clearRect(0, 0, width, height)
  context.drawImage(video, (width - w) / 2, (height - h) / 2, w, h)
}
