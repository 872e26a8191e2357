/**
 * Publishes clips to a live stream on a simulated clock and records every playlist and segment that viewers could fetch.
 *
 * @module
 */
import { TICKS_PER_SEC, TIME_MODULUS } from '../../../src/mpegts/timestamps.ts'
import type { Clock } from '../../../src/timing/clock.ts'
import { MULTIVARIANT_URI, TS_MULTIVARIANT_URI } from '../../../src/hls/file-names.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { PACKET_BYTES, SYNC_BYTE } from '../../../src/mpegts/packet.ts'
import { readPesTimes } from '../../../src/pace/packet-times.ts'
import { LiveStream } from '../../../src/stream/live-stream.ts'
import type { LiveStreamOptions } from '../../../src/stream/live-stream-options.ts'
import type { Publication } from '../../../src/stream/publication.ts'
import { WorkBudget } from '../../../src/stream/work-budget.ts'
import { PUBLISHER_REPORT } from '../../stream/publisher-report.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import type { Clip } from '../../mpegts/edit.ts'

/** A clip sent in real time, a pause of the encoder, or a disconnection. */
export type Step = Clip | { readonly silentSec: number } | { readonly awaySec: number }

export interface PublishOptions extends Partial<
  Pick<
    LiveStreamOptions,
    'tracks' | 'program' | 'segmentSec' | 'maxSegmentSec' | 'partSec' | 'captions'
  >
> {
  /** Default 7 packets. */
  readonly payloadBytes?: number
}

/** A segment as its playlist lists it. */
export interface ListedSegment {
  readonly uri: string
  readonly durationSec: number
  readonly discontinuity: boolean
  readonly programDateTimeMs: number
  readonly bytes: Buffer
  /** Init segment; undefined in transport stream. */
  readonly init?: Buffer
}

export interface PlaylistHistory {
  /** Versions of the playlist. */
  readonly versions: string[]
  /** Segments of all versions. */
  readonly segments: ListedSegment[]
}

/** Multivariant playlist, version of a media playlist, init segment, or segment. */
export interface Load {
  readonly name: string
  readonly body: string | Buffer
  /** Media playlist that lists the media; undefined for playlists. */
  readonly playlist?: string
  readonly atMs: number
}

/** What a viewer of one format loaded. */
export interface Presentation {
  /** All of it, in order. */
  readonly loads: readonly Load[]
  /** All media playlists in any version of the multivariant playlist, by name. */
  readonly playlists: ReadonlyMap<string, PlaylistHistory>
  /** Versions of the multivariant playlist. */
  readonly multivariants: readonly string[]
}

export interface Published {
  readonly ts: Presentation
  readonly cmaf: Presentation
  /** Warning codes in order of appearance. */
  readonly warnings: readonly string[]
  /** Highest share of the work budget in use; at 1, media is dropped. */
  readonly workUsed: number
}

const PAYLOAD_BYTES = 1316

/** Runs all steps, then stops the stream. */
export function publish(steps: readonly Step[], options: PublishOptions = {}): Published {
  const { payloadBytes = PAYLOAD_BYTES, ...settings } = options
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 }
  const budget = new WatchedBudget(0)
  const stream = new LiveStream('corpus', {
    clock,
    ...{ epoch: 'e', cache: new SegmentCache({ maxBytes: 1e9 }) },
    ...{ formats: ['ts', 'cmaf'], partSec: 0.2 },
    ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 3 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
    budget,
    ...settings,
  })
  const warnings = new Set<string>()
  stream.on('warning', ({ code }) => warnings.add(code))
  stream.renewKey(clock.wallMs() + 7_200_000)

  const ts = new Viewer(stream, clock, TS_MULTIVARIANT_URI)
  const cmaf = new Viewer(stream, clock, MULTIVARIANT_URI)
  const look = () => {
    ts.look()
    cmaf.look()
  }
  let publication: Publication | undefined
  const pass = (untilUs: number) => {
    for (; nowUs < untilUs; nowUs = Math.min(nowUs + 250_000, untilUs)) stream.tick()
    look()
  }
  for (const step of steps) {
    if ('silentSec' in step) pass(nowUs + step.silentSec * 1e6)
    else if ('awaySec' in step) {
      publication?.end('timeout')
      publication = undefined
      pass(nowUs + step.awaySec * 1e6)
    } else {
      const { bytes } = step
      const encoder = { report: () => PUBLISHER_REPORT, close: () => undefined }
      publication ??= stream.publish({ ...encoder, lastPacketUs: nowUs })
      const beganUs = nowUs
      const secAt = paceOf(step)
      for (let at = 0; at < bytes.length; at += payloadBytes) {
        publication.push(bytes.subarray(at, at + payloadBytes))
        pass(beganUs + secAt(Math.min(at + payloadBytes, bytes.length)) * 1e6)
      }
    }
  }
  publication?.end('shutdown')
  look()
  stream.stop('api')
  look()
  return { ts, cmaf, warnings: [...warnings], workUsed: budget.used }
}

class WatchedBudget extends WorkBudget {
  readonly #allUs = this.balanceUs
  used = 0

  override spend(workUs: number): void {
    super.spend(workUs)
    this.used = Math.max(this.used, 1 - this.balanceUs / this.#allUs)
  }
}

/** @returns a function from byte offset to sending time in seconds, interpolated between the DTS of frames */
function paceOf({ bytes, sec }: Clip): (offset: number) => number {
  const points = [{ offset: 0, sec: 0 }]
  let firstTicks: number | undefined
  for (let offset = 0; offset < bytes.length; offset += PACKET_BYTES) {
    if (bytes[offset] !== SYNC_BYTE) break
    const times = readPesTimes(bytes, offset)
    if (times?.isVideo !== true) continue
    firstTicks ??= times.dtsTicks
    const sinceFirst = (times.dtsTicks - firstTicks + TIME_MODULUS) % TIME_MODULUS
    points.push({ offset, sec: Math.min(sinceFirst / TICKS_PER_SEC, sec) })
  }
  points.push({ offset: bytes.length, sec })
  let index = 0
  return (offset) => {
    while (points[index + 1]!.offset < offset) index++
    const [from, to] = [points[index]!, points[index + 1]!]
    const share = (offset - from.offset) / (to.offset - from.offset)
    return from.sec + Math.max(to.sec - from.sec, 0) * share
  }
}

/** Reads every playlist of a format after every payload, and every segment when it is first listed. */
class Viewer implements Presentation {
  readonly loads: Load[] = []
  readonly playlists = new Map<string, PlaylistHistory>()
  readonly multivariants: string[] = []
  readonly #stream: LiveStream
  readonly #clock: Clock
  readonly #multivariantUri: string
  readonly #seen = new Map<string, string>()

  constructor(stream: LiveStream, clock: Clock, multivariantUri: string) {
    this.#stream = stream
    this.#clock = clock
    this.#multivariantUri = multivariantUri
  }

  look(): void {
    const multivariant = this.#fetchChanged(this.#multivariantUri)
    if (multivariant !== undefined) this.multivariants.push(multivariant)
    const names = readNames(this.multivariants.at(-1) ?? '')
    for (const name of new Set([...names, ...this.playlists.keys()])) {
      const text = this.#fetchChanged(name)
      if (text !== undefined) this.#record(name, text)
    }
  }

  #fetchChanged(name: string): string | undefined {
    const file = this.#stream.files.get(name)
    if (file === undefined || this.#seen.get(name) === file.version) return undefined
    this.#seen.set(name, file.version)
    const text = file.chunks.join('')
    this.loads.push({ name, body: text, atMs: this.#clock.wallMs() })
    return text
  }

  #fetch(uri: string): Buffer {
    return Buffer.concat(this.#stream.files.get(uri)?.chunks ?? [])
  }

  #record(name: string, text: string): void {
    const history = this.playlists.get(name) ?? { versions: [], segments: [] }
    this.playlists.set(name, history)
    history.versions.push(text)
    for (const listed of parseM3u8(text).manifest.segments ?? []) {
      const { uri, duration: durationSec, discontinuity = false, programDateTime = NaN } = listed
      if (history.segments.some((segment) => segment.uri === uri)) continue
      const bytes = this.#fetch(uri)
      const init = listed.map && this.#fetch(listed.map.uri)
      const place = { uri, durationSec, discontinuity, programDateTimeMs: programDateTime }
      history.segments.push({ ...place, bytes, ...(init && { init }) })
      const media = { playlist: name, atMs: this.#clock.wallMs() }
      if (init !== undefined && !this.#seen.has(listed.map!.uri)) {
        this.#seen.set(listed.map!.uri, '')
        this.loads.push({ ...media, name: listed.map!.uri, body: init })
      }
      if (bytes.length > 0) this.loads.push({ ...media, name: uri, body: bytes })
    }
  }
}

/** @returns URIs of the media playlists in a multivariant playlist */
function readNames(text: string): string[] {
  const variants = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const renditions = [...text.matchAll(/URI="([^"]+)"/g)].map(([, uri]) => uri!)
  return [...variants, ...renditions]
}
