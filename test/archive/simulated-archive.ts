/**
 * Archives in simulated time, in a store that fails as it is told.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { Archive, type ArchiveEvent } from '../../src/archive/archive.ts'
import { StoreError } from '../../src/archive/store-error.ts'
import { MillraceError } from '../../src/errors.ts'
import type { Format } from '../../src/hls/file-names.ts'
import { FetchedFiles } from '../../src/hls/store/fetched-files.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { ContinuedStream } from '../../src/stream/live-stream-options.ts'
import { CLIP, ClipEncoder } from '../support/clip-encoder.ts'

const MIB = 1024 * 1024
const TICK_US = 250_000
export const WALL_MS = Date.UTC(2026, 0, 1)
export const FOLDER = 'studio/20260101T000000Z-e'

/** Keeps what it is given, unless it fails. */
export class MemoryStore {
  readonly files = new Map<string, Buffer>()
  /** Keys in the order in which they were stored. */
  readonly order: string[] = []
  /** Keys of media that was asked for. */
  readonly asked: string[] = []
  /** Keys of media that was stored again with other bytes. */
  readonly overwritten: string[] = []
  fails: (key: string) => boolean = () => false
  /** Whether a file is stored, and nobody is told. */
  loses: (key: string) => boolean = () => false
  /** Whether somebody else has stored other bytes under the key. */
  conflicts: (key: string) => boolean = () => false
  /** Whether it knows conditions of a PUT. */
  compares = true

  async put(
    { key, chunks }: { key: string; chunks: readonly Buffer[] },
    { createOnly, replaces }: { createOnly?: boolean; replaces?: string | undefined } = {},
  ) {
    if (this.fails(key)) throw new StoreError('TIMEOUT', 'The store does not answer')
    if (this.conflicts(key)) throw new StoreError('CONFLICT', 'It is another one')
    const bytes = Buffer.concat(chunks)
    const before = this.files.get(key)
    const isOther = before?.equals(bytes) === false
    if (!/m3u8|json/.test(key) && isOther) this.overwritten.push(key)
    const isWanted = createOnly ? !isOther : replaces === undefined || replaces === etagOf(before)
    if (this.compares && !isWanted && etagOf(before) !== etagOf(bytes))
      throw new StoreError('CONFLICT', 'It is another one')
    this.files.set(key, bytes)
    this.order.push(key)
    if (this.loses(key)) throw new StoreError('TIMEOUT', 'The store does not answer')
    return etagOf(bytes)
  }

  async get(key: string) {
    if (!/m3u8|json/.test(key)) this.asked.push(key)
    if (this.fails(key)) throw new StoreError('TIMEOUT', 'The store does not answer')
    const bytes = this.files.get(key)
    return bytes && { bytes, etag: etagOf(bytes) }
  }

  async head(key: string) {
    const stored = await this.get(key)
    return stored && { sizeBytes: stored.bytes.length, md5: undefined, etag: stored.etag }
  }

  async close() {}

  text(name: string, folder = FOLDER): string {
    return this.files.get(`${folder}/${name}`)?.toString() ?? ''
  }

  /** Folders of a run, in order. */
  get folders(): string[] {
    const indexes = [...this.files.keys()].filter((key) => key.endsWith('/index.json'))
    return indexes
      .map((key) => key.slice(0, key.lastIndexOf('/')))
      .toSorted((a, b) => a.localeCompare(b, undefined, { numeric: true }))
  }
}

function etagOf(file: Buffer | undefined): string | undefined {
  return file && createHash('md5').update(file).digest('hex')
}

interface ArchiveSettings {
  readonly maxBytes?: number
  readonly dvrSec?: number
  readonly publicUrl?: string
  readonly fullBytes?: number
  readonly formats?: readonly Format[]
  readonly segmentSec?: number
  /** Time between two moments at which an encoder sends; a part of 250 ms. */
  readonly stepUs?: number
}

export function setUp({
  maxBytes = 64 * MIB,
  dvrSec = 0,
  publicUrl,
  fullBytes = MIB,
  formats = ['ts', 'cmaf'],
  segmentSec = 1,
  stepUs = 10_000,
}: ArchiveSettings = {}) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => WALL_MS + nowUs / 1000 }
  const cache = new SegmentCache({ maxBytes: 256 * 1024 * 1024 })
  const pauses = new Set<{ atUs: number; resolve: () => void }>()
  const create = (epoch: string, continued?: ContinuedStream) => {
    const stream = new LiveStream('studio', {
      ...{ clock, cache, epoch, continued, formats, partSec: 0.2 },
      ...{ segmentSec, maxSegmentSec: 10, playlistSegments: 6 },
      ...{ lingerSec: 60, reconnectGraceSec: 120 },
    })
    stream.renewKey(clock.wallMs() + 7_200_000)
    return stream
  }
  const store = new MemoryStore()
  const events: ArchiveEvent[] = []
  const createArchive = () =>
    new Archive({
      ...{
        store,
        mode: 'all',
        maxBytes,
        fullBytes,
        clock,
        captions: 'auto',
        url: 's3://bucket',
        dvrSec,
      },
      rewind: {
        ...{ store, publicUrl, maxFileBytes: MIB },
        fetched: new FetchedFiles({
          ...{ maxBytes: 8 * MIB, maxFetches: 4 },
          refusalOf: (error) =>
            error instanceof MillraceError ? error : new MillraceError('ARCHIVE_UNAVAILABLE'),
        }),
      },
      random: () => 1,
      pause: (ms) => new Promise((resolve) => pauses.add({ atUs: nowUs + ms * 1000, resolve })),
      onEvent: (_, event) => events.push(event),
      onStore: () => undefined,
    })
  const encoders = new Set<ClipEncoder>()
  const running = new Map<LiveStream, Archive>()
  const archived = (stream: LiveStream) => {
    const archive = createArchive()
    archive.follow(stream)
    running.set(stream, archive)
    return { stream, archive }
  }
  /** Another process goes on with a stream, of which its owner hears nothing. */
  const continueElsewhere = (
    { checkpoint, run }: LiveStream,
    { epoch = 'f', fence, ...others }: { epoch?: string; fence?: number; rows?: [] } = {},
  ) => archived(create(epoch, { checkpoint: { ...checkpoint, ...others }, run, fence }))
  return {
    ...{ clock, cache, create, createArchive, store, events, continueElsewhere },
    connect(stream: LiveStream, clip = CLIP) {
      const encoder = new ClipEncoder('main', nowUs, clip)
      encoder.publication = stream.publish(encoder)
      encoders.add(encoder)
      return encoder
    },
    async run(sec: number) {
      for (const endUs = nowUs + sec * 1e6; nowUs < endUs;) {
        nowUs += stepUs
        for (const encoder of encoders) encoder.step(nowUs)
        if (nowUs % TICK_US !== 0) continue
        for (const [stream, archive] of running) {
          stream.tick()
          archive.tick()
        }
        for (const pause of pauses) {
          if (pause.atUs > nowUs) continue
          pauses.delete(pause)
          pause.resolve()
        }
        await new Promise(setImmediate)
      }
    },
    begin: () => archived(create('e')),
    /** Kills the process of a stream; another one goes on with its checkpoint. */
    takeOver(before: LiveStream, options?: Parameters<typeof continueElsewhere>[1]) {
      running.clear()
      const taken = continueElsewhere(before, options)
      before.leave()
      return taken
    },
  }
}
