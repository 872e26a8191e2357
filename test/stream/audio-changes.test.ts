/**
 * Low latency when the audio frames get another duration: PART-TARGET was fixed by those before.
 */
import t from 'tap'
import { MULTIVARIANT_URI } from '../../src/hls/file-names.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder, Publication } from '../../src/stream/publication.ts'
import { patSection, pesPacket, pmtSection, TsBuilder } from '../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'
import { StreamViewer } from './stream-viewer.ts'

const SEC = 90_000
const [VIDEO_PID, AUDIO_PID, MAP_PID] = [0x100, 0x101, 0x1000]
const START_TICKS = 10 * SEC
const FRAMES_PER_SEC = 25
const FRAME_TICKS = SEC / FRAMES_PER_SEC
const GOP_FRAMES = 2 * FRAMES_PER_SEC

/** Frame of silence of 44.1 kHz: the sampling frequency index is 4. */
function aac44(): Buffer {
  const frame = adtsFrames(1)
  frame[2] = 0x50
  return frame
}

/** Frame of 64 kbit/s, 48 kHz stereo (ETSI TS 102 366 4.3). */
function ac3(): Buffer {
  const frame = Buffer.alloc(256)
  Buffer.from([0x0b, 0x77, 0, 0, 8, 0x40, 0x40]).copy(frame)
  return frame
}

const CODECS = {
  'AAC 48 kHz': { streamType: 0x0f, frame: adtsFrames(1), frameTicks: (1024 * SEC) / 48_000 },
  'AAC 44.1 kHz': { streamType: 0x0f, frame: aac44(), frameTicks: (1024 * SEC) / 44_100 },
  'AC-3': { streamType: 0x81, frame: ac3(), frameTicks: (1536 * SEC) / 48_000 },
}
type Codec = keyof typeof CODECS

/** An encoder of 25 frames per second in GOPs of 2 s, with each audio frame in a PES packet. */
class AudioEncoder implements Encoder {
  readonly source: 'main' | 'backup'
  lastPacketUs = 0
  publication: Publication | undefined
  /** Codec from the next key frame on. */
  next: Codec
  #codec: Codec
  #mapVersion = 0
  #frames = 0
  #audioTicks = START_TICKS
  readonly #ts = new TsBuilder()

  constructor(source: 'main' | 'backup', codec: Codec) {
    this.source = source
    this.next = codec
    this.#codec = codec
  }

  /** Sends a frame of video with its audio. */
  step(nowUs: number): void {
    const key = this.#frames % GOP_FRAMES === 0
    if (key) this.#sendTables()
    const ptsTicks = START_TICKS + this.#frames++ * FRAME_TICKS
    const payload = h264AccessUnit({ key, sizeBytes: 400 })
    this.#ts.unit(VIDEO_PID, pesPacket(payload, { ptsTicks }))
    const { frame, frameTicks } = CODECS[this.#codec]
    for (; this.#audioTicks < ptsTicks + FRAME_TICKS; this.#audioTicks += frameTicks) {
      const times = { ptsTicks: Math.round(this.#audioTicks), streamId: 0xc0 }
      this.#ts.unit(AUDIO_PID, pesPacket(frame, times))
    }
    this.lastPacketUs = nowUs
    this.publication?.push(Buffer.concat(this.#ts.packets.splice(0)))
  }

  report = () => PUBLISHER_REPORT

  close(): void {
    this.publication = undefined
  }

  #sendTables(): void {
    if (this.next !== this.#codec) this.#mapVersion++
    this.#codec = this.next
    const { streamType } = CODECS[this.#codec]
    const streams = [
      { pid: VIDEO_PID, streamType: 0x1b },
      { pid: AUDIO_PID, streamType },
    ]
    const map = pmtSection(1, VIDEO_PID, streams, { version: this.#mapVersion })
    this.#ts.sections(0, patSection([[1, MAP_PID]])).sections(MAP_PID, map)
  }
}

function setUp() {
  let nowUs = 0
  const stream = new LiveStream('studio', {
    clock: { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 100, epoch: 'e' },
    ...{ formats: ['ts', 'cmaf'], partSec: 0.2, lingerSec: 60, reconnectGraceSec: 120 },
  })
  const viewer = new StreamViewer(stream, ['main', 'cmaf-video-1', 'cmaf-audio-1'])
  const encoders = new Set<AudioEncoder>()
  return {
    stream,
    viewer,
    connect(source: 'main' | 'backup', codec: Codec) {
      const encoder = new AudioEncoder(source, codec)
      encoder.publication = stream.publish(encoder)
      encoders.add(encoder)
      return encoder
    },
    pause: (encoder: AudioEncoder) => encoders.delete(encoder),
    run(sec: number) {
      for (let frame = 0; frame < sec * FRAMES_PER_SEC; frame++) {
        nowUs += 1e6 / FRAMES_PER_SEC
        for (const encoder of encoders) encoder.step(nowUs)
        stream.tick()
        viewer.look()
      }
    },
    /** Codec of the newest segment, and PART-TARGET. */
    read() {
      const multivariant = stream.files.get(MULTIVARIANT_URI)!.chunks.join('')
      const playlist = stream.files.get('cmaf-audio-1.m3u8')!.chunks.join('')
      const [, codec] = /CODECS="[^",]*,([^"]*)"/.exec(multivariant)!
      const [, partTarget] = /PART-TARGET=([\d.]+)/.exec(playlist)!
      return { codec, partTarget }
    },
  }
}

/** Ways in which the audio changes. */
const CHANGES: Readonly<
  Record<string, (set: ReturnType<typeof setUp>, from: AudioEncoder, to: Codec) => void>
> = {
  'of an encoder that reconnects': ({ connect, pause, run }, from, to) => {
    from.publication!.end('shutdown')
    pause(from)
    run(1)
    connect('main', to)
  },
  'within a connection': (_, from, to) => {
    from.next = to
  },
  'with the backup on air': ({ connect, pause, run }, from, to) => {
    connect('backup', to)
    run(2)
    pause(from)
  },
}

const PAIRS: readonly (readonly [Codec, Codec])[] = [
  ['AAC 48 kHz', 'AC-3'],
  ['AC-3', 'AAC 48 kHz'],
  ['AAC 48 kHz', 'AAC 44.1 kHz'],
  ['AAC 44.1 kHz', 'AAC 48 kHz'],
]

for (const [name, change] of Object.entries(CHANGES)) {
  t.test(`parts last as long as their samples when the audio changes ${name}`, async (t) => {
    for (const [from, to] of PAIRS) {
      const set = setUp()
      const encoder = set.connect('main', from)
      set.run(7)
      const { partTarget } = set.read()
      change(set, encoder, to)
      set.run(6)
      const label = `${from} > ${to}`
      t.strictSame(set.viewer.complaints, [], label)
      t.strictSame(set.read(), { codec: to === 'AC-3' ? 'ac-3' : 'mp4a.40.2', partTarget }, label)
    }
  })
}
