/**
 * A stream of the endurance bench with its encoders and a player. The main encoder fails at intervals and comes back.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import type { EncoderSource } from '../../src/api/records.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder, Publication } from '../../src/stream/publication.ts'
import type { Clock } from '../../src/timing/clock.ts'
import { StreamJudge } from '../../test/support/stream-judge.ts'

const KEY_LIFETIME_MS = 7_200_000

/** Interval at which an encoder without a backup connects anew. */
const RECONNECT_SEC = 30 * 60

/** Time until a main encoder with a backup connects again. The stream fails back to it 10 s later. */
const AWAY_US = 5_000_000

/** Payloads by which the backup is behind, so that its key frames are not those of the main encoder. */
const BACKUP_DELAY = 40

/** Changes of source that a failure causes. */
const FAILOVER = 'main > backup: lost, backup > main: recovered'

const EXPECTED_WARNINGS: ReadonlySet<string> = new Set(['FAILED_OVER', 'STANDBY_GONE'])

interface EnduringStreamOptions {
  readonly clock: Clock
  /** Interval between failures; undefined: there is no backup. */
  readonly failoverSec: number | undefined
  /** Delay of the first failure, as a share of the interval. */
  readonly phase: number
}

/** Inputs: `push` each payload of the clip when it is due, and `play` once a segment. Both throw if something is wrong. */
export class EnduringStream {
  /** Number of failovers to the backup and back. */
  failovers = 0
  readonly #stream: LiveStream
  readonly #clock: Clock
  readonly #judge = new StreamJudge()
  readonly #intervalUs: number
  #main: ClipEncoder
  readonly #backup: ClipEncoder | undefined
  #failUs: number
  #returnUs = Infinity
  #failures = 0
  /** Changes of source since the latest failure. */
  #changes: string[] = []
  #faults: string[] = []
  /** Hashes of the segments that the playlist lists. */
  #hashes = new Map<string, string>()

  constructor(stream: LiveStream, { clock, failoverSec, phase }: EnduringStreamOptions) {
    this.#stream = stream
    this.#clock = clock
    this.#intervalUs = (failoverSec ?? RECONNECT_SEC) * 1e6
    this.#failUs = this.#intervalUs * (1 + phase)
    this.#main = this.#connect('main')
    stream.on('end', ({ reason }) => this.#faults.push(`ended: ${reason}`))
    if (failoverSec === undefined) return
    this.#backup = this.#connect('backup', BACKUP_DELAY)
    stream.on('source', ({ from, to, reason }) => this.#changes.push(`${from} > ${to}: ${reason}`))
    stream.on('interrupted', ({ reason }) => this.#faults.push(`interrupted: ${reason}`))
    stream.on('warning', ({ code, message }) => {
      if (!EXPECTED_WARNINGS.has(code)) this.#faults.push(`${code}: ${message}`)
    })
  }

  get segments(): number {
    return this.#stream.report().totals.segments
  }

  push(payload: Buffer): void {
    const nowUs = this.#clock.nowUs()
    if (nowUs >= this.#failUs) this.#fail()
    if (nowUs >= this.#returnUs) {
      this.#main.publication.end('timeout')
      this.#main = this.#connect('main')
      this.#returnUs = Infinity
    }
    if (this.#returnUs === Infinity) this.#main.push(payload, nowUs)
    this.#backup?.push(payload, nowUs)
  }

  /** Loads the playlist, and each listed segment when it is new and before it leaves. */
  play(): void {
    const { files } = this.#stream
    const playlist = files.get('playlist.m3u8')?.chunks.join('')
    if (playlist !== undefined) {
      this.#faults.push(...this.#judge.playlist('playlist.m3u8', playlist, this.#clock.wallMs()))
      const names = playlist.match(/^.+\.ts$/gm) ?? []
      const hashes = new Map<string, string>()
      for (const [index, name] of names.entries()) {
        const before = this.#hashes.get(name)
        const hash = before === undefined || index === 0 ? this.#load(name) : before
        if (hash !== (before ?? hash)) this.#faults.push(`${name} has changed`)
        hashes.set(name, hash)
      }
      this.#hashes = hashes
    }
    if (this.#faults.length > 0) this.#throw(this.#faults.join('\n'))
  }

  /** Ends or, each other time, silences a connection that has a backup. */
  #fail(): void {
    const hasBackup = this.#backup !== undefined
    if (hasBackup && this.#failures > 0) {
      const changes = this.#changes.join(', ')
      if (changes !== FAILOVER) this.#throw(`changes of source: ${changes}`)
      this.failovers++
    }
    this.#changes = []
    if (this.#failures++ % 2 === 0) this.#main.publication.end('shutdown')
    this.#returnUs = this.#failUs + (hasBackup ? AWAY_US : 0)
    this.#failUs += this.#intervalUs
  }

  #connect(source: EncoderSource, delay = 0): ClipEncoder {
    this.#stream.renewKey(this.#clock.wallMs() + KEY_LIFETIME_MS)
    return new ClipEncoder(this.#stream, { source, delay, nowUs: this.#clock.nowUs() })
  }

  #load(name: string): string {
    const loan = this.#stream.files.lend(name) ?? this.#throw(`${name} is listed, but not there`)
    const hash = createHash('sha1')
    for (const chunk of loan.file.chunks) hash.update(chunk)
    loan.end?.()
    return hash.digest('base64')
  }

  #throw(message: string): never {
    const atSec = this.#clock.nowUs() / 1e6
    throw new Error(`${this.#stream.id}, ${atSec.toFixed(2)} s: ${message}`)
  }
}

/** A connected encoder. */
class ClipEncoder implements Encoder {
  readonly source: EncoderSource
  readonly publication: Publication
  lastPacketUs: number
  readonly #delay: number
  #delayed: Buffer[] = []
  #bytes = 0

  /** @param options.delay  number of payloads */
  constructor(
    stream: LiveStream,
    { source, delay, nowUs }: { source: EncoderSource; delay: number; nowUs: number },
  ) {
    this.source = source
    this.lastPacketUs = nowUs
    this.#delay = delay
    this.publication = stream.publish(this)
  }

  push(newest: Buffer, nowUs: number): void {
    this.#delayed.push(newest)
    if (this.#delayed.length <= this.#delay) return
    const payload = this.#delayed.shift()!
    this.lastPacketUs = nowUs
    this.#bytes += payload.length
    // A buffer each, as a socket hands them out.
    const datagram = Buffer.allocUnsafeSlow(payload.length)
    payload.copy(datagram)
    this.publication.push(datagram)
  }

  report() {
    return { remote: '127.0.0.1:1', bitrateBps: 0, bytesReceived: this.#bytes }
  }

  close(): void {}
}
