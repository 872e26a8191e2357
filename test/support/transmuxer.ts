/**
 * The transmuxer of hls.js, the code that turns segments into what a browser's decoder takes, run as it is published: its
 * worker script, in a context of its own.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createContext, Script } from 'node:vm'

const WORKER = createRequire(import.meta.url).resolve('hls.js/dist/hls.worker.js')
const SCRIPT = new Script(readFileSync(WORKER, 'utf8'), { filename: WORKER })

/** What became of one or more segments. */
export interface Transmuxed {
  readonly videoFrames: number
  /** NAL units with 4 bytes of length before each. */
  readonly videoBytes: number
  readonly audioFrames: number
  /** Without ADTS headers. */
  readonly audioBytes: number
  readonly id3Samples: number
  /** A key frame comes first; undefined where there is no video. */
  readonly independent: boolean | undefined
  /** Errors, and warnings of its log, but those of the pictures' times: what it thinks of a seam tells nothing of its sides. */
  readonly complaints: readonly string[]
}

interface RemuxedTrack {
  readonly nb: number
  readonly data2?: Uint8Array
}

interface Message {
  readonly event: string
  readonly data: {
    readonly remuxResult?: {
      readonly video?: RemuxedTrack
      readonly audio?: RemuxedTrack
      readonly id3?: { readonly samples: readonly unknown[] }
      readonly independent?: boolean
    }
    readonly logType?: string
    readonly message?: string
    readonly reason?: string
    readonly details?: string
  }
}

type Listener = (event: { data: unknown }) => void

/** What its transmuxer reads of hls.js's configuration. */
const CONFIG = {
  debug: true,
  progressive: false,
  stretchShortVideoTrack: false,
  forceKeyFrameOnDiscontinuity: true,
  // Where sound and picture do not begin together it makes up silence: that is nothing to count.
  maxAudioFramesDrift: 1e6,
}

/** What browsers play between them; MP3 within MP4, as not all take it bare. */
const TYPE_SUPPORTED = { mpeg: false, mp3: true, ac3: true }

const SILENT_CONSOLE = Object.fromEntries(
  ['debug', 'log', 'info', 'warn', 'error'].map((name) => [name, () => undefined]),
)

const MDAT_HEADER_BYTES = 8

export interface SegmentBytes {
  readonly bytes: Buffer
  readonly durationSec: number
  readonly discontinuity: boolean
}

/** Segments one after the other, as hls.js plays them; one alone as it joins. */
export function transmux(segments: readonly SegmentBytes[]): Transmuxed {
  const messages: Message[] = []
  const worker = startWorker((message) => messages.push(message))
  worker({ cmd: 'init', id: 'main', config: JSON.stringify(CONFIG), typeSupported: TYPE_SUPPORTED })
  let timeOffset = 0
  for (const [sn, { bytes, durationSec, discontinuity }] of segments.entries()) {
    const chunkMeta = describeChunk(sn, bytes.length)
    const contiguous = sn > 0 && !discontinuity
    if (!contiguous) {
      worker({ cmd: 'configure', config: { duration: 0, defaultInitPts: null } })
    }
    const state = {
      ...{ contiguous, discontinuity: !contiguous, trackSwitch: sn === 0, timeOffset },
      ...{ accurateTimeOffset: false, initSegmentChange: false },
    }
    const data = Uint8Array.from(bytes).buffer
    worker({ cmd: 'demux', data, decryptdata: null, chunkMeta, state })
    worker({ cmd: 'flush', chunkMeta })
    timeOffset += durationSec
  }
  return summarise(messages)
}

function summarise(messages: readonly Message[]): Transmuxed {
  const results = messages.flatMap(({ data }) => data?.remuxResult ?? [])
  const videos = results.flatMap(({ video }) => video ?? [])
  const audios = results.flatMap(({ audio }) => audio ?? [])
  return {
    videoFrames: countFrames(videos),
    videoBytes: countBytes(videos),
    audioFrames: countFrames(audios),
    audioBytes: countBytes(audios),
    id3Samples: results.reduce((sum, { id3 }) => sum + (id3?.samples.length ?? 0), 0),
    independent: results.find(({ independent }) => independent !== undefined)?.independent,
    complaints: messages.flatMap(({ event, data }) => {
      if (event === 'hlsError') return [data.reason ?? data.details ?? event]
      const { logType, message = event } = data ?? {}
      const isComplaint = logType === 'warn' || logType === 'error'
      return isComplaint && !message.includes('between fragments') ? [message] : []
    }),
  }
}

function countFrames(tracks: readonly RemuxedTrack[]): number {
  return tracks.reduce((sum, { nb }) => sum + nb, 0)
}

function countBytes(tracks: readonly RemuxedTrack[]): number {
  return tracks.reduce(
    (sum, { data2 }) => sum + (data2?.length ?? MDAT_HEADER_BYTES) - MDAT_HEADER_BYTES,
    0,
  )
}

/** @returns what sends the worker a message */
function startWorker(onMessage: (message: Message) => void): (message: object) => void {
  const listeners: Listener[] = []
  const self = {
    addEventListener: (_: 'message', listener: Listener) => void listeners.push(listener),
    postMessage: onMessage,
    performance,
    navigator: { userAgent: 'Chrome/140' },
    console: SILENT_CONSOLE,
  }
  SCRIPT.runInContext(createContext({ self, ...self }))
  return (message) => {
    for (const listener of listeners) listener({ data: { instanceNo: 0, ...message } })
  }
}

function describeChunk(sn: number, size: number): object {
  const timing = () => ({ start: 0, executeStart: 0, executeEnd: 0, end: 0 })
  const buffering = { audio: timing(), video: timing(), audiovideo: timing() }
  const place = { level: 0, sn, part: -1, id: sn, size, partial: false, duration: 0, iframe: false }
  return { ...place, transmuxing: timing(), buffering }
}
