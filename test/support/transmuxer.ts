/**
 * The transmuxer of hls.js, which converts segments for Media Source Extensions: its published worker script, run in a
 * separate context.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createContext, Script } from 'node:vm'

const WORKER = createRequire(import.meta.url).resolve('hls.js/dist/hls.worker.js')
const SCRIPT = new Script(readFileSync(WORKER, 'utf8'), { filename: WORKER })

/** Result of transmuxing one or more segments. */
export interface Transmuxed {
  readonly videoFrames: number
  /** Bytes of NAL units, with a 4-byte length before each. */
  readonly videoBytes: number
  readonly audioFrames: number
  /** Bytes of audio frames, without ADTS headers. */
  readonly audioBytes: number
  readonly id3Samples: number
  /** Whether the first frame is a key frame; undefined without video. */
  readonly independent: boolean | undefined
  /** Errors and log warnings, except those about video times at a discontinuity. */
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

/** The part of the hls.js configuration that its transmuxer reads. */
const CONFIG = {
  debug: true,
  progressive: false,
  stretchShortVideoTrack: false,
  forceKeyFrameOnDiscontinuity: true,
  // hls.js inserts silence when audio and video do not start together, which must not count.
  maxAudioFramesDrift: 1e6,
}

/** Codecs that browsers support; MP3 only in MP4, since some do not support it alone. */
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

/**
 * Transmuxes segments in sequence, as hls.js does; a single one is transmuxed as at the start of playback.
 *
 * @param init  init segment of CMAF
 */
export function transmux(segments: readonly SegmentBytes[], init?: Buffer): Transmuxed {
  const messages: Message[] = []
  const worker = createTransmuxer((message) => messages.push(message))
  const initSegmentData = init && Uint8Array.from(init)
  const config = { duration: 0, defaultInitPts: null, initSegmentData }
  let timeOffset = 0
  for (const [sn, { bytes, durationSec, discontinuity }] of segments.entries()) {
    const chunkMeta = describeChunk(sn, bytes.length)
    const contiguous = sn > 0 && !discontinuity
    if (!contiguous) {
      worker({ cmd: 'configure', config })
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

/** Listeners of the worker, which is started once: a start takes 3 ms. */
const listeners: Listener[] = []
let receive: (message: Message) => void = () => undefined

/** Replaces the transmuxer in the worker. @returns a function that sends messages to the new one */
function createTransmuxer(onMessage: (message: Message) => void): (message: object) => void {
  const isFirst = listeners.length === 0
  if (isFirst) startWorker()
  receive = onMessage
  const post = (message: object) => {
    for (const listener of listeners) listener({ data: { instanceNo: 0, ...message } })
  }
  const options = { id: 'main', config: JSON.stringify(CONFIG), typeSupported: TYPE_SUPPORTED }
  post({ cmd: isFirst ? 'init' : 'reset', resetNo: 0, ...options })
  return post
}

function startWorker(): void {
  const self = {
    addEventListener: (_: 'message', listener: Listener) => void listeners.push(listener),
    postMessage: (message: Message) => receive(message),
    performance,
    navigator: { userAgent: 'Chrome/140' },
    console: SILENT_CONSOLE,
  }
  SCRIPT.runInContext(createContext({ self, ...self }))
}

function describeChunk(sn: number, size: number): object {
  const timing = () => ({ start: 0, executeStart: 0, executeEnd: 0, end: 0 })
  const buffering = { audio: timing(), video: timing(), audiovideo: timing() }
  const place = { level: 0, sn, part: -1, id: sn, size, partial: false, duration: 0, iframe: false }
  return { ...place, transmuxing: timing(), buffering }
}
