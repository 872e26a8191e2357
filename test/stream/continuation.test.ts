/**
 * A stream that another process continues from its checkpoint: every version of every playlist, as a viewer reads it from
 * one process after the other.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import t from 'tap'
import { parseMediaPlaylist } from '../../src/check/playlist/media-playlist.ts'
import { formatOf, playlistUri, type Format, type RenditionName } from '../../src/hls/file-names.ts'
import { parseCheckpoint, type StreamCheckpoint } from '../../src/hls/playlist/checkpoint.ts'
import { applyChange } from '../support/checkpoint-record.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { ContinuedStream } from '../../src/stream/live-stream-options.ts'
import type { Publication } from '../../src/stream/publication.ts'
import { compareEdges } from '../support/house-rules.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { mergeDelta } from '../support/merge-delta.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { GopEncoder } from './gops.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

const CLIPS = ['demo', 'h264-two-audio', 'h264-aac', 'h265-aac'].map((name) =>
  readFileSync(new URL(`../../fixtures/${name}.mpegts`, import.meta.url)),
)
const ORIGIN = 'https://media.example/'
const PAYLOAD_BYTES = 1316
const PAYLOAD_US = 10_000

interface Settings {
  readonly formats: readonly Format[]
  readonly partSec: number | undefined
  readonly segmentSec: number
  readonly playlistSegments: number
  readonly maxBytes: number
}

/** Processes that serve one stream, one after the other, and a viewer of all its files. */
class Relay {
  readonly complaints: string[] = []
  readonly settings: Settings
  readonly judges: Readonly<Record<Format, StreamJudge>>
  /** Checkpoint as another process knows it. */
  record: StreamCheckpoint | undefined
  stream!: LiveStream
  nowUs = 0
  /** Bytes of all segments so far. */
  readonly #backup = new Map<string, Buffer>()
  readonly #texts = new Map<string, string>()
  readonly #versions = new Map<string, string>()
  readonly #uris = new Map<string, string>()
  readonly #targets = new Set<string>()
  #epoch = 0

  constructor(settings: Settings, hasBackup: boolean) {
    this.settings = settings
    const except = [
      // Parts of a segment that was never complete leave with it.
      ...['HOUSE_KEPT', 'INDEPENDENT_MISSING'],
      ...(hasBackup && settings.maxBytes > 1e7 ? [] : ['SEGMENT_BECAME_GAP']),
      ...['CODECS_MISSING', 'CHANNELS_MISSING'],
    ]
    this.judges = { ts: new StreamJudge({ except }), cmaf: new StreamJudge({ except }) }
  }

  start(continued?: ContinuedStream): void {
    this.stream = new LiveStream('studio', {
      clock: { nowUs: () => this.nowUs, wallMs: () => Date.UTC(2026, 0, 1) + this.nowUs / 1000 },
      cache: new SegmentCache({ maxBytes: this.settings.maxBytes }),
      ...{ epoch: `e${this.#epoch++}`, maxSegmentSec: 4, lingerSec: 60, reconnectGraceSec: 120 },
      ...this.settings,
      continued,
    })
    this.stream.on('checkpoint', (change) => {
      this.record = applyChange(this.record, structuredClone(change))
      this.#look()
    })
    this.stream.on('segment', ({ uri, bytes, map }) => {
      this.#backup.set(uri, Buffer.from(bytes))
      if (map !== undefined) this.#backup.set(map.uri, Buffer.from(map.bytes))
    })
    this.#look()
  }

  /** The process is killed, and another one continues the stream. */
  takeOver(hasBackup: boolean): void {
    const checkpoint = parseCheckpoint(
      JSON.parse(JSON.stringify(this.record ?? this.stream.checkpoint)),
    )
    if (checkpoint === undefined) throw new Error(`unreadable: ${JSON.stringify(this.record)}`)
    if (this.record !== undefined) this.#compare(this.stream.checkpoint, this.record)
    const available = this.available
    if (checkpoint.rows.length !== (this.record?.rows.length ?? 0)) throw new Error('rows are lost')
    this.stream.removeAllListeners()
    const mediaOf = (uri: string) => {
      const bytes = hasBackup ? this.#backup.get(uri) : undefined
      return bytes && [bytes]
    }
    this.start({ checkpoint, mediaOf })
    const continued = this.stream.checkpoint
    if (checkpoint.targets !== undefined) {
      // The last row closes, and the window moves on.
      const moved = { listedFrom: 0, rows: [] }
      this.#compare({ ...continued, ...moved }, { ...checkpoint, ...moved })
    }
    this.record = continued
    if (!hasBackup || this.settings.maxBytes < 1e7 || checkpoint.targets === undefined) return
    // The checkpoint has what the first rendition has: others may be retained for some milliseconds more.
    const oldest = checkpoint.rows[0]?.mediaSequence ?? 0
    const segments = checkpoint.rows.flatMap((row) => row.segments)
    const inits = new Set(segments.flatMap(({ gap, map }) => (gap ? [] : (map ?? []))))
    const isForgotten = (uri: string) => {
      const [, mediaSequence] = /-(\d+)\.(?:ts|m4s)$/.exec(uri) ?? []
      return mediaSequence === undefined ? !inits.has(uri) : Number(mediaSequence) < oldest
    }
    const isGone = (uri: string) => this.stream.files.get(uri) === undefined && !isForgotten(uri)
    this.#complain('takeover', available.filter(isGone))
  }

  /** URIs of the segments that can be read, listed or not. */
  get available(): string[] {
    return [...this.#backup.keys()].filter((uri) => this.stream.files.get(uri) !== undefined)
  }

  connect(): Publication {
    return this.stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
  }

  push(publication: Publication, clip: Buffer, payloads: number): void {
    for (let index = 0; index < payloads; index++) {
      const at = (index * PAYLOAD_BYTES) % clip.length
      this.nowUs += PAYLOAD_US
      publication.push(clip.subarray(at, at + PAYLOAD_BYTES))
      if (index % 25 === 0) this.stream.tick()
      this.#look()
    }
  }

  /** Reads each file that has changed. */
  #look(): void {
    const names = this.record?.renditions.map(({ name }) => name) ?? []
    const playlists = names.flatMap((name) => {
      const playlist = this.#read(name)
      return playlist !== undefined && formatOf(name) === 'cmaf' ? [playlist] : []
    })
    if (this.settings.partSec !== undefined) {
      // Before the first part of a process, no playlist has parts, and no report has LAST-PART.
      const isPartless = (it: string) => /at (\d+)\.undefined: \1\.-1$/.test(it)
      const complaints = compareEdges(playlists).filter((it) => !isPartless(it))
      this.#complain('edges', complaints)
    }
    for (const uri of ['master.m3u8', 'ts.m3u8']) {
      const master = this.stream.files.get(uri)
      if (master === undefined || this.#isKnown(uri, master.version)) continue
      const text = master.chunks.join('')
      const isCmaf = uri === 'master.m3u8' && this.settings.formats.includes('cmaf')
      const judge = this.judges[isCmaf ? 'cmaf' : 'ts']
      this.#complain(uri, [...judge.multivariant(text), ...parseM3u8(text).complaints])
    }
  }

  #read(name: RenditionName) {
    const uri = playlistUri(name)
    const file = this.stream.files.get(uri)
    if (file === undefined) {
      if (this.#texts.has(uri)) this.#complain(uri, ['it is gone'])
      return undefined
    }
    const text = file.chunks.join('')
    const playlist = parseMediaPlaylist(text, ORIGIN + uri)
    const before = this.#texts.get(uri)
    if (text === before) return playlist
    if (this.#isKnown(uri, file.version)) this.#complain(uri, [`version ${file.version} again`])
    this.#texts.set(uri, text)
    const judge = this.judges[formatOf(name)]
    // A playlist of gaps alone has no EXT-X-MAP.
    const isEmpty = playlist.segments.every(({ gap }) => gap)
    const broken = judge
      .playlist(uri, text)
      .filter((it) => !isEmpty || !it.startsWith('VERSION_TOO_HIGH'))
    this.#complain(uri, [...broken, ...parseM3u8(text).complaints])
    for (const { sequence, uri: listed, gap, map, parts } of playlist.segments) {
      const init = map?.url.replace(ORIGIN, '')
      const hasMedia = listed === undefined ? parts.some((part) => !part.gap) : !gap
      if (hasMedia && (init === undefined) !== (formatOf(name) === 'ts'))
        this.#complain(uri, [`${sequence} has ${init}`])
      const isInitGone = init !== undefined && this.stream.files.get(init) === undefined
      if (hasMedia && isInitGone) this.#complain(uri, [`${init} is gone`])
      const key = `${uri} ${sequence}`
      if (listed === undefined) continue
      const known = this.#uris.get(key) ?? listed
      this.#uris.set(key, listed)
      if (known !== listed) this.#complain(uri, [`${sequence} was ${known} and is ${listed}`])
      const isGone = !gap && this.stream.files.get(listed) === undefined
      if (isGone) this.#complain(uri, [`${listed} is gone`])
    }
    const delta = this.stream.files.get(uri, { skip: true })!.chunks.join('')
    if (before !== undefined && mergeDelta(before, delta) !== text && delta !== text) {
      this.#complain(uri, ['the delta update differs'])
    }
    for (const [line] of text.matchAll(/#EXT-X-(TARGETDURATION|PART-INF|SERVER-CONTROL).*/g)) {
      this.#targets.add(line)
    }
    const { partSec, formats } = this.settings
    const maxLines = partSec === undefined || !formats.includes('cmaf') ? 1 : 3
    if (this.#targets.size > maxLines) this.#complain(uri, [...this.#targets])
    return playlist
  }

  /** Whether a version of the file was read before that one. */
  #isKnown(uri: string, version: string): boolean {
    const key = `${uri} ${version}`
    const isKnown = this.#versions.has(key)
    this.#versions.set(key, version)
    return isKnown
  }

  #compare(actual: StreamCheckpoint, expected: StreamCheckpoint): void {
    const [a, b] = [actual, expected].map((it) => JSON.stringify(it))
    if (a !== b) throw new Error(`the checkpoint is ${a}, not ${b}`)
  }

  #complain(uri: string, complaints: readonly string[]): void {
    this.complaints.push(
      ...complaints.map((it) => `e${this.#epoch - 1} ${uri}: ${it}\n${this.#texts.get(uri)}`),
    )
    if (this.complaints.length > 0) throw new Error(this.complaints.join('\n'))
  }
}

const settings = fc.record({
  formats: fc.constantFrom<readonly Format[]>(['ts', 'cmaf'], ['cmaf'], ['ts']),
  partSec: fc.constantFrom(undefined, 0.2, 0.333),
  segmentSec: fc.constantFrom(0.5, 1, 2),
  playlistSegments: fc.constantFrom(3, 4, 8, 12),
  maxBytes: fc.constantFrom(400_000, 64_000_000, 64_000_000),
})

const run = fc.record({
  clip: fc.constantFrom(...CLIPS.keys()),
  payloads: fc.integer({ min: 0, max: 1500 }),
  /** Whether the encoder leaves before the process is killed. */
  leaves: fc.boolean(),
  awaySec: fc.constantFrom(0, 0.1, 3, 15),
})

type ValueOf<A> = A extends fc.Arbitrary<infer T> ? T : never
type Case = readonly [ValueOf<typeof settings>, hasBackup: boolean, readonly ValueOf<typeof run>[]]

/** Cases that once failed. */
const NAMED: Readonly<Record<string, readonly Case[]>> = {
  'audio that ends before its video needs a segment more for the minimum duration of a playlist': [
    [
      {
        ...{ formats: ['ts', 'cmaf'], partSec: undefined, segmentSec: 0.5 },
        ...{ playlistSegments: 3, maxBytes: 400_000 },
      },
      false,
      [
        { clip: 0, payloads: 1258, leaves: false, awaySec: 0 },
        { clip: 0, payloads: 0, leaves: false, awaySec: 0 },
      ],
    ],
  ],
  'a segment that is not complete keeps the date that its first part had': [
    [
      {
        ...{ formats: ['ts', 'cmaf'], partSec: 0.333, segmentSec: 0.5 },
        ...{ playlistSegments: 3, maxBytes: 400_000 },
      },
      false,
      [
        { clip: 0, payloads: 1350, leaves: false, awaySec: 0 },
        { clip: 0, payloads: 0, leaves: false, awaySec: 0 },
      ],
    ],
  ],
  'media that the first rendition retains no longer may be gone, and init segments of gaps': [
    [
      {
        ...{ formats: ['ts', 'cmaf'], partSec: undefined, segmentSec: 0.5 },
        ...{ playlistSegments: 3, maxBytes: 64_000_000 },
      },
      true,
      [
        { clip: 0, payloads: 153, leaves: true, awaySec: 0 },
        { clip: 1, payloads: 13, leaves: true, awaySec: 0 },
        { clip: 0, payloads: 689, leaves: true, awaySec: 0 },
        { clip: 0, payloads: 0, leaves: false, awaySec: 0 },
      ],
    ],
    [
      {
        ...{ formats: ['ts', 'cmaf'], partSec: 0.2, segmentSec: 0.5 },
        ...{ playlistSegments: 4, maxBytes: 64_000_000 },
      },
      true,
      [
        { clip: 3, payloads: 1495, leaves: true, awaySec: 15 },
        { clip: 1, payloads: 9, leaves: false, awaySec: 15 },
      ],
    ],
    [
      {
        ...{ formats: ['cmaf'], partSec: 0.2, segmentSec: 2 },
        ...{ playlistSegments: 3, maxBytes: 64_000_000 },
      },
      true,
      [
        { clip: 0, payloads: 470, leaves: false, awaySec: 3 },
        { clip: 0, payloads: 1301, leaves: false, awaySec: 15 },
        { clip: 2, payloads: 3, leaves: false, awaySec: 15 },
      ],
    ],
  ],
}

/** Serves one stream by one process after the other. */
function play(...[chosen, hasBackup, runs]: Case): void {
  const relay = new Relay(chosen, hasBackup)
  relay.start()
  for (const [index, { clip, payloads, leaves, awaySec }] of runs.entries()) {
    if (index > 0) relay.takeOver(hasBackup)
    const publication = relay.connect()
    relay.push(publication, CLIPS[clip]!, payloads)
    if (leaves) publication.end('shutdown')
    relay.nowUs += awaySec * 1e6
    if (leaves) relay.stream.tick()
  }
  relay.stream.stop('api')
}

t.test('any processes one after the other serve one stream', async (t) => {
  const runs = fc.array(run, { minLength: 2, maxLength: 4 })
  fc.assert(fc.property(settings, fc.boolean(), runs, play), {
    numRuns: rounds(2, 300),
    seed: FIRST_SEED,
  })
  t.pass('for every seed')
})

for (const [title, cases] of Object.entries(NAMED)) {
  t.test(title, async (t) => {
    for (const each of cases) t.doesNotThrow(() => play(...each))
  })
}

const CLIP = CLIPS[0]!

/** A stream of 8 s with the encoder of the demo clip, killed in the middle of a segment. */
function setUp({
  partSec,
  payloads = 560,
  hasBackup = true,
  formats = ['ts'],
}: {
  partSec?: number
  payloads?: number
  hasBackup?: boolean
  formats?: readonly Format[]
} = {}) {
  const settings = { formats, partSec, segmentSec: 1, playlistSegments: 4, maxBytes: 64e6 }
  const relay = new Relay(settings, hasBackup)
  relay.start()
  relay.push(relay.connect(), CLIP, payloads)
  const read = (name = 'playlist.m3u8') => relay.stream.files.get(name)?.chunks.join('') ?? ''
  return { relay, read }
}

const linesOf = (text: string) =>
  text.split('\n').filter((line) => !line.startsWith('#EXT-X-PART:'))

t.test('a continued stream is INTERRUPTED, playable, and ends after its grace', async (t) => {
  const { relay, read } = setUp()
  const [before, master] = [read(), read('master.m3u8')]
  relay.takeOver(true)
  const { stream } = relay
  t.match(stream, { status: 'INTERRUPTED', live: false })
  t.match(stream.report(), { tracks: [{ codec: 'h264' }, { codec: 'aac' }] })
  const reserved = linesOf(read()).slice(-5, -1)
  t.match(reserved[0], '#EXT-X-GAP')
  t.match(reserved[3], /^e0-\d+\.ts$/, 'the open segment keeps its number and its URI')
  const listed = (text: string) => /e0-(\d+)\.ts\n$/.exec(text)?.[1]
  t.equal(Number(listed(read())), Number(listed(before)) + 1)
  t.equal(read('master.m3u8'), master)
  relay.nowUs += 119.9e6
  stream.tick()
  t.equal(stream.status, 'INTERRUPTED')
  relay.nowUs += 0.1e6
  stream.tick()
  t.equal(stream.status, 'STOPPED')
  t.match(read(), /#EXT-X-ENDLIST\n$/)
})

t.test('the next encoder goes on with a discontinuity and URIs of its own', async (t) => {
  const { relay, read } = setUp()
  const free = relay.record!.free
  relay.takeOver(true)
  const events: string[] = []
  relay.stream.on('live', () => events.push('live'))
  relay.push(relay.connect(), CLIP, 300)
  t.match(read(), new RegExp(`#EXT-X-DISCONTINUITY\n.*\n.*\ne1-${free.media}\\.ts`))
  t.same(events, ['live'])
  relay.push(relay.connect(), CLIP, 700)
  const [, sequence] = /#EXT-X-DISCONTINUITY-SEQUENCE:(\d+)/.exec(read()) ?? []
  t.equal(Number(sequence), free.discontinuity + 1, 'two discontinuities have left the playlist')
})

t.test('segments whose media is lost are gaps', async (t) => {
  const { relay, read } = setUp({ hasBackup: false })
  relay.takeOver(false)
  const { segments } = parseMediaPlaylist(read(), 'https://media.example/playlist.m3u8')
  t.ok(segments.length > 3)
  t.ok(segments.every(({ gap }) => gap))
})

t.test('segments that had left the playlist are available for as long as they were', async (t) => {
  const { relay, read } = setUp({ payloads: 1500 })
  const { available } = relay
  const left = available.filter((uri) => !read().includes(uri))
  t.ok(left.length >= 4, left.join())
  relay.takeOver(true)
  t.strictSame(relay.available, available)
  t.notOk(
    left.some((uri) => read().includes(uri)),
    'they are not listed again',
  )
  relay.takeOver(true)
  t.strictSame(relay.available, available, 'also by the process after the next')
  relay.push(relay.connect(), CLIP, 800)
  t.notOk(
    left.some((uri) => relay.available.includes(uri)),
    'and not for ever',
  )
})

t.test('a reader that waits for a part of the killed process learns that it is lost', async (t) => {
  const { relay, read } = setUp({ formats: ['ts', 'cmaf'], partSec: 0.2, payloads: 600 })
  const media = relay.record!.rows.at(-1)!.mediaSequence
  t.match(
    read('cmaf-video-1.m3u8'),
    new RegExp(`e0-v1-${media - 1}\\.m4s\n(#EXT-X-P.*\n)*#EXT-X-PART:`),
    'parts are listed',
  )
  relay.takeOver(true)
  const { files } = relay.stream
  for (const part of [undefined, 0, 9]) {
    t.equal(files.availability('cmaf-video-1.m3u8', { mediaSequence: media, part }), 'current')
  }
  t.match(
    read('cmaf-video-1.m3u8'),
    /\n#EXT-X-DISCONTINUITY\n#EXT-X-RENDITION-REPORT:.*\n$/,
    'nothing is hinted',
  )
  const next = { mediaSequence: media + 1, part: 0 }
  t.equal(files.availability('cmaf-video-1.m3u8', next), 'future')
  let released = 0
  files.wait('cmaf-video-1.m3u8', next, () => released++)
  relay.push(relay.connect(), CLIP, 100)
  t.equal(released, 1)
  t.match(
    read('cmaf-video-1.m3u8'),
    /#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="e1-v1-.*\n#EXT-X-PROGRAM-DATE-TIME:.*\n#EXT-X-PART:.*"e1-v1-p0\.m4s"/,
  )
})

t.test('EXT-X-TARGETDURATION stays, and longer GOPs are cut', async (t) => {
  const { relay, read } = setUp()
  const [, target] = /TARGETDURATION:(\d+)/.exec(read())!
  relay.takeOver(true)
  const encoder = new GopEncoder()
  const publication = relay.connect()
  publication.push(encoder.encode([4, 4, 4]))
  const { segments, targetSec } = parseMediaPlaylist(read(), 'https://media.example/playlist.m3u8')
  t.equal(targetSec, Number(target))
  t.ok(segments.every(({ durationSec }) => Math.round(durationSec) <= targetSec))
  t.match(relay.stream.report().warnings, [{ code: 'GOP_TOO_LONG' }])
})

for (const hasBackup of [true, false]) {
  const title = `two segments, ${hasBackup ? 'with' : 'without'} their media, go on in another process`
  t.test(title, async (t) => {
    const { relay, publish, read, headOf } = setUpGops(hasBackup)
    publish([3, 3, 1])
    const head = headOf(read('cmaf-video-1.m3u8'))
    t.match(head, ['#EXT-X-TARGETDURATION:3', /PART-TARGET=0/])
    t.equal(read('playlist.m3u8'), undefined, 'before the third segment')

    relay.takeOver(hasBackup)
    t.match(relay.stream, { status: 'INTERRUPTED', live: false })
    t.match(read('master.m3u8'), /cmaf-video-1\.m3u8/)
    t.match(read('ts.m3u8'), /\nplaylist\.m3u8/)
    t.strictSame(headOf(read('cmaf-video-1.m3u8')), head)
    const [first] = parseMediaPlaylist(read('cmaf-video-1.m3u8')!, ORIGIN).segments
    t.match(first, { sequence: 0, durationSec: 3, gap: !hasBackup })

    publish([4, 1])
    t.strictSame(headOf(read('cmaf-video-1.m3u8')), head)
    t.equal(relay.stream.live, true, 'with the next segment')
    const { segments, targetSec } = parseMediaPlaylist(read('playlist.m3u8')!, ORIGIN)
    t.equal(targetSec, 3)
    t.same(
      segments.map(({ durationSec }) => durationSec).slice(-2),
      [3.4, 0.6],
      'a longer GOP is cut',
    )
  })
}

/** Processes that serve GOPs with low latency. */
function setUpGops(hasBackup: boolean) {
  const media = { formats: ['ts', 'cmaf'], partSec: 0.2, segmentSec: 2 } as const
  const relay = new Relay({ ...media, playlistSegments: 8, maxBytes: 64e6 }, hasBackup)
  relay.start()
  return {
    relay,
    publish(gops: readonly number[], framesPerSec?: number) {
      const ts = new GopEncoder(framesPerSec).encode(gops)
      relay.push(relay.connect(), ts, Math.ceil(ts.length / PAYLOAD_BYTES))
    },
    read: (name: string) => relay.stream.files.get(name)?.chunks.join(''),
    headOf: (text = '') => text.match(/#EXT-X-(TARGETDURATION|PART-INF).*/g),
  }
}

t.test(
  'before the second segment, another process begins anew with a PART-TARGET of its own',
  async (t) => {
    const { relay, publish, read, headOf } = setUpGops(true)
    publish([3, 2])
    t.match(relay.record, { targets: undefined, free: { media: 2 } }, 'the second has parts')
    t.equal(read('master.m3u8'), undefined)
    relay.takeOver(true)
    publish([2, 4, 1], 12)
    const text = read('cmaf-video-1.m3u8')
    t.strictSame(headOf(text), ['#EXT-X-TARGETDURATION:4', '#EXT-X-PART-INF:PART-TARGET=0.17335'])
    t.match(text, /#EXT-X-MEDIA-SEQUENCE:2\n/)
    t.notMatch(text, 'e0-')
    t.strictSame(relay.complaints, [])
  },
)

t.test('playlists that appeared when media paused go on in another process', async (t) => {
  const { relay, read } = setUp({ formats: ['ts', 'cmaf'], partSec: 0.2, payloads: 120 })
  t.equal(read(), '')
  for (let sec = 0; sec < 11; sec++) {
    relay.nowUs += 1e6
    relay.stream.tick()
  }
  const [text, master] = [read(), read('ts.m3u8')]
  t.match(text, '#EXTINF')
  relay.takeOver(true)
  t.ok(read().startsWith(text.trimEnd()), read())
  t.equal(read('ts.m3u8'), master)
})

t.test('targets without segments go on: playlists appear with the next segment', async (t) => {
  const { relay } = setUp({ formats: ['ts', 'cmaf'], partSec: 0.2, payloads: 220 })
  const { targets, free } = relay.record!
  t.ok(targets !== undefined && free.media < 4, 'the first two segments')
  const next = new Relay(relay.settings, false)
  next.start({ checkpoint: { ...relay.record!, rows: [] } })
  t.equal(next.stream.files.get('master.m3u8'), undefined)
  next.push(next.connect(), CLIP, 120)
  for (const name of ['master.m3u8', 'cmaf-video-1.m3u8', 'playlist.m3u8'])
    t.ok(next.stream.files.get(name), name)
  t.strictSame(next.record!.targets, targets)
})

t.test('a stream without segments begins READY, with the free numbers', async (t) => {
  const relay = new Relay(
    { formats: ['ts'], partSec: 0.2, segmentSec: 1, playlistSegments: 4, maxBytes: 64e6 },
    true,
  )
  relay.start()
  const checkpoint = { ...relay.stream.checkpoint, free: { media: 700, discontinuity: 7 } }
  relay.start({ checkpoint: parseCheckpoint(checkpoint)! })
  t.equal(relay.stream.status, 'READY')
  relay.push(relay.connect(), CLIP, 560)
  const text = relay.stream.files.get('playlist.m3u8')!.chunks.join('')
  t.match(text, /#EXT-X-MEDIA-SEQUENCE:70\d\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n/)
  t.notMatch(text, /#EXT-X-DISCONTINUITY\n/)
})

t.test('nothing is gathered while nobody listens for the checkpoint', async (t) => {
  const { relay } = setUp()
  const { record, stream } = relay
  t.strictSame(JSON.parse(JSON.stringify(record)), JSON.parse(JSON.stringify(stream.checkpoint)))
  stream.removeAllListeners('checkpoint')
  relay.push(relay.connect(), CLIP, 560)
  const seen: number[] = []
  stream.on('checkpoint', ({ rows }) => seen.push(rows.length))
  relay.push(relay.connect(), CLIP, 560)
  t.ok(seen.length > 0 && Math.max(...seen) <= 3, seen.join())
})
