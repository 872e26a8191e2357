/**
 * Rules of HTTP that delivery keeps, as tables of requests by curl and of their replies. They hold at any URL of a live
 * low-latency stream: at the service, behind TLS, and at an edge.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'
import { findTag, unquoted } from '../../../src/check/playlist/tag-reader.ts'
import type { LiveClip } from '../support/live-clip.ts'
import { curl, type CurlReply, type CurlRequest } from '../support/curl.ts'
import { mergeDelta } from '../../support/merge-delta.ts'
import { until } from '../../support/until.ts'

export interface DeliveryTarget {
  /** CMAF playlist of a live low-latency stream in both formats, of at least 12 target durations. */
  readonly playlistUrl: string
  /** Flags of curl that choose the protocol. */
  readonly flags: readonly string[]
  /** Protocol that the server must choose. */
  readonly version: '1.1' | '2'
  /** Media of the stream, which pauses where a file must not change. */
  readonly clip: Pick<LiveClip, 'stall' | 'resume'>
}

/** A request, and the reply that the rule demands. */
interface Row {
  readonly method?: CurlRequest['method']
  readonly query?: string
  readonly headers?: CurlRequest['headers']
  readonly status: number
  /** Headers of the reply; null: absent. */
  readonly expected?: Readonly<Record<string, string | RegExp | null>>
  /** Body of the reply; default: that of the file with status 200, none with 304 and for HEAD. */
  readonly body?: Buffer | RegExp
  /** Content of a body that is coded. */
  readonly decode?: (body: Buffer) => Buffer
}

/** Plain reply for a file, to which others are compared. */
type Known = CurlReply & {
  readonly etag: string
  /** ETag of the file for a client that accepts gzip. */
  readonly gzipEtag: string
  readonly targetSec: number
}

type FileName = 'playlist' | 'master' | 'segment' | 'part' | 'init' | 'tsPlaylist' | 'tsSegment'

interface Rules {
  readonly title: string
  readonly files: readonly FileName[]
  readonly rows: (known: Known, name: FileName) => readonly Row[]
}

const PLAYLISTS: readonly FileName[] = ['playlist', 'tsPlaylist', 'master']
const MEDIA: readonly FileName[] = ['segment', 'part', 'init', 'tsSegment']
const ALL = [...PLAYLISTS, ...MEDIA]

/** Lifetimes in caches, in target durations (RFC 8216bis appendix B.1); of init segments, longer than any window. */
const LIFETIMES: Readonly<Record<FileName, number>> = {
  playlist: 0.5,
  tsPlaylist: 0.5,
  master: 1,
  segment: 6,
  part: 6,
  init: 300,
  tsSegment: 6,
}

const mediaType = (name: FileName): string => (name === 'tsSegment' ? 'video/mp2t' : 'video/mp4')

/** RFC 9110 section 8.8.3. */
const STRONG_ETAG = /^"[!#-~]+"$/

const PREFLIGHT = {
  origin: 'https://example.com',
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'range,if-none-match,cmcd-session',
}

const GZIP = { 'accept-encoding': 'gzip' }

/** `Accept-Encoding`, and the coding of a playlist for it (RFC 9110 section 12.5.3). */
const CODINGS: readonly (readonly [header: string, coding: 'gzip' | null])[] = [
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate, gzip;q=0.5', 'gzip'],
  ['gzip;q=0.001, identity;q=0', 'gzip'],
  ['*;q=0, gzip', 'gzip'],
  ['identity', null],
  ['deflate', null],
  ['gzip;q=0', null],
  ['gzip;q=0.5, identity', null],
  ['gzip;q=0, *', null],
  ['identity;q=0', null],
  ['*;q=0', null],
]

const TABLE: readonly Rules[] = [
  {
    title: 'sends type, lifetime, strong ETag and Vary',
    files: ALL,
    rows: ({ targetSec }, name) => {
      const seconds = Math.floor(targetSec * LIFETIMES[name])
      const common = { etag: STRONG_ETAG, 'content-encoding': null, 'last-modified': null }
      const own = PLAYLISTS.includes(name)
        ? {
            'content-type': 'application/vnd.apple.mpegurl',
            'cache-control': `public, max-age=${seconds}`,
            vary: 'Accept-Encoding',
            'accept-ranges': null,
          }
        : {
            'content-type': mediaType(name),
            'cache-control': `public, max-age=${seconds}, immutable`,
            vary: null,
            'accept-ranges': 'bytes',
          }
      return [{ status: 200, expected: { ...common, ...own } }]
    },
  },
  {
    title: 'answers HEAD with the headers of GET, and ignores Range for it',
    files: ALL,
    rows: ({ headers, etag }) => {
      const expected = { ...headers, date: / GMT$/ }
      return [
        { method: 'HEAD', status: 200, expected },
        { method: 'HEAD', headers: { range: 'bytes=0-0' }, status: 200, expected },
        { method: 'HEAD', headers: { 'if-none-match': etag }, status: 304, expected: { etag } },
      ]
    },
  },
  {
    title: 'answers If-None-Match with 304 by weak comparison, and ignores dates',
    files: ALL,
    rows: ({ etag, headers: { 'cache-control': caching = '', vary = null } }) => [
      ...[etag, `W/${etag}`, `"x", ${etag}`, `"x" ,W/"y",W/${etag}`, '*'].map((tags): Row => ({
        headers: { 'if-none-match': tags, 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
        status: 304,
        expected: { etag, 'cache-control': caching, vary, 'content-type': null },
      })),
      ...['"x"', etag.slice(1, -1), `W/"x", "y"`].map((tags): Row => ({
        headers: { 'if-none-match': tags },
        status: 200,
        expected: { etag },
      })),
      { headers: { 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' }, status: 200 },
    ],
  },
  {
    title: 'answers one range of media with 206, also across its chunks',
    files: MEDIA,
    rows: ({ body, etag }, name) => {
      const size = body.length
      const partly = (range: string, first: number, last: number, ifRange?: string): Row => ({
        headers: { range, ...(ifRange !== undefined && { 'if-range': ifRange }) },
        status: 206,
        expected: {
          'content-range': `bytes ${first}-${last}/${size}`,
          'content-type': mediaType(name),
          etag,
        },
        body: body.subarray(first, last + 1),
      })
      const pieces = Array.from({ length: 7 }, (_, index) => {
        const [first, end] = [index, index + 1].map((at) => Math.floor((size * at) / 7))
        return partly(`bytes=${first}-${end! - 1}`, first!, end! - 1)
      })
      return [
        ...pieces,
        partly('bytes=0-', 0, size - 1),
        partly('bytes=0-0', 0, 0),
        partly('bytes=188-', 188, size - 1),
        partly('bytes=-188', size - 188, size - 1),
        partly(`bytes=-${size * 2}`, 0, size - 1),
        partly(`bytes=1-${size * 2}`, 1, size - 1),
        partly(`bytes=${size - 1}-${size - 1}`, size - 1, size - 1),
        partly('bytes=1-2', 1, 2, etag),
      ]
    },
  },
  {
    title: 'answers a range outside the file with 416, and ignores one that does not count',
    files: MEDIA,
    rows: ({ body: { length: size }, etag }) => [
      ...[`bytes=${size}-`, `bytes=${size}-${size + 9}`, 'bytes=-0'].map((range): Row => ({
        headers: { range },
        status: 416,
        expected: { 'content-range': `bytes */${size}`, etag: null },
        body: /"code":"RANGE_NOT_SATISFIABLE"/,
      })),
      ...['bytes=0-1,4-5', 'bytes=5-4', 'bytes=x-1', 'bytes=-', 'items=0-1'].map((range): Row => ({
        headers: { range },
        status: 200,
        expected: { 'content-range': null },
      })),
      ...['"x"', `W/${etag}`, 'Fri, 01 Jan 2100 00:00:00 GMT'].map((ifRange): Row => ({
        headers: { range: 'bytes=0-1', 'if-range': ifRange },
        status: 200,
      })),
      { headers: { range: 'bytes=0-1', 'if-none-match': etag }, status: 304 },
    ],
  },
  {
    title: 'sends whole playlists for a range',
    files: PLAYLISTS,
    rows: () => [
      { headers: { range: 'bytes=0-3' }, status: 200, expected: { 'content-range': null } },
      { headers: { range: 'bytes=99999999-' }, status: 200 },
    ],
  },
  {
    title: 'compresses playlists for clients that prefer it, under an ETag for each coding',
    files: PLAYLISTS,
    rows: ({ etag, gzipEtag }) => [
      ...CODINGS.map(([header, coding]): Row => ({
        headers: { 'accept-encoding': header },
        status: 200,
        expected: {
          'content-encoding': coding,
          etag: coding === null ? etag : gzipEtag,
          vary: 'Accept-Encoding',
        },
        ...(coding === 'gzip' && { decode: gunzipSync }),
      })),
      {
        headers: { ...GZIP, 'if-none-match': `W/${gzipEtag}` },
        status: 304,
        expected: { etag: gzipEtag, vary: 'Accept-Encoding', 'content-encoding': null },
      },
      { headers: { ...GZIP, 'if-none-match': etag }, status: 200, decode: gunzipSync },
      { headers: { 'if-none-match': gzipEtag }, status: 200, expected: { etag } },
    ],
  },
  {
    title: 'sends media without a coding',
    files: MEDIA,
    rows: () =>
      ['gzip', 'br', '*', 'identity;q=0'].map((header): Row => ({
        headers: { 'accept-encoding': header },
        status: 200,
        expected: { 'content-encoding': null, vary: null },
      })),
  },
  {
    title: 'sends the same for any query without delivery directives',
    files: ALL,
    rows: ({ etag, headers: { 'cache-control': caching = '' } }) =>
      ['?', '?_=1', '?x=%zz&y', '?CMCD=sid%3D%22a%22', '?_HLS_report=a&_HLS_push=0&_HLS_x=1'].map(
        (query): Row => ({ query, status: 200, expected: { etag, 'cache-control': caching } }),
      ),
  },
  {
    title: 'ignores delivery directives for media',
    files: MEDIA,
    rows: ({ etag }) => [
      { query: '?_HLS_msn=99999999&_HLS_part=x', status: 200, expected: { etag } },
    ],
  },
  {
    title: 'allows scripts of any origin, and the headers of players',
    files: ALL,
    rows: () => [
      { headers: { origin: 'https://example.com' }, status: 200 },
      {
        method: 'OPTIONS',
        headers: PREFLIGHT,
        status: 204,
        expected: {
          'access-control-allow-methods': 'GET, HEAD',
          'access-control-allow-headers': /^\*, Authorization, Range, .*CMCD-Session/,
          'access-control-max-age': '86400',
        },
      },
    ],
  },
  {
    title: 'sends a delta update that merges into the full playlist',
    files: ['playlist'],
    rows: ({ body }) =>
      ['YES', 'v2'].map((value): Row => ({
        query: `?_HLS_skip=${value}`,
        status: 200,
        decode: (delta: Buffer) => {
          const text = delta.toString()
          if (!text.includes('#EXT-X-SKIP:')) return Buffer.from('no EXT-X-SKIP')
          return Buffer.from(mergeDelta(body.toString(), text))
        },
      })),
  },
]

/** Runs the table, and the rules of requests that wait. */
export async function checkDelivery(t: Test, target: DeliveryTarget): Promise<void> {
  for (const name of ALL) await t.test(name, (t) => runTable(t, target, name))
  await t.test('refuses unknown files and streams at once', (t) => checkUnknown(t, target))
  await t.test('refuses malformed directives, and media that is far ahead', (t) =>
    checkDirectives(t, target),
  )
  await t.test('holds a reload until the playlist has the media', (t) => checkReloads(t, target))
  await t.test('holds a request for the hinted part, and sends it whole', (t) =>
    checkHint(t, target),
  )
}

/** Checks a stream without new media: requests that wait get 503 after three target durations. */
export async function checkStalled(t: Test, target: DeliveryTarget): Promise<void> {
  const { url, next, hint } = await readPlaylist(target)
  const replies = await Promise.all(
    [`${url}?${next}`, hint].map((held) => curl(target.flags, [{ url: held }])),
  )
  for (const [reply] of replies) {
    t.match(reply, { status: 503, headers: { 'retry-after': '1' } })
    t.match(reply!.body.toString(), /"code":"MEDIA_LATE"/)
  }
  t.match(await one(target, { url }), { status: 200 }, 'the playlist as it was')
}

/** Checks a stream that has ended: nothing waits, and no media is hinted. */
export async function checkEnded(t: Test, target: DeliveryTarget): Promise<void> {
  // An edge learns of the end a moment later.
  const { url, text, lastSequence } = await until('the end of the playlist', async () => {
    const read = await readPlaylist(target)
    return read.text.endsWith('#EXT-X-ENDLIST\n') && read
  })
  t.notMatch(text, /EXT-X-PRELOAD-HINT/)
  const reply = await one(target, { url: `${url}?_HLS_msn=${lastSequence + 1}` })
  t.match({ ...reply, body: reply.body.toString() }, { status: 200, body: text })
  t.ok(reply.firstByteMs < AT_ONCE_MS, `${reply.firstByteMs} ms`)
}

/** Longest time of a reply for which nothing has to come. */
const AT_ONCE_MS = 1000

/** Attempts to see a playlist that does not change: an edge may get the last version late. */
const MAX_ATTEMPTS = 50

/** Checks all rules for one file, between two replies with the same ETag. */
async function runTable(t: Test, target: DeliveryTarget, name: FileName): Promise<void> {
  const table = TABLE.filter(({ files }) => files.includes(name))
  target.clip.stall()
  const { files, targetSec } = await readPlaylist(target)
  const url = files[name]
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const [first, coded] = await curl(target.flags, [{ url }, { url, headers: GZIP }])
    const [etag = '', gzipEtag = ''] = [first!.headers['etag'], coded!.headers['etag']]
    const known = { ...first!, etag, gzipEtag, targetSec }
    const rules = table.map(({ title, rows }) => ({ title, rows: rows(known, name) }))
    const requests = rules.flatMap(({ rows }) => rows).map((row) => requestOf(url, row))
    const replies = await curl(target.flags, [...requests, { url }])
    if (replies.at(-1)!.headers['etag'] !== known.etag) {
      await sleep(50)
      continue
    }
    t.strictSame(
      replies.map(({ isFirstOfConnection }) => isFirstOfConnection),
      replies.map((_, index) => index === 0),
      'all requests use one connection',
    )
    for (const { title, rows } of rules) {
      const broken = rows.flatMap((row) => {
        const found = violations(row, replies.shift()!, known, target)
        return found.length === 0 ? [] : [{ request: requestOf(name, row), found }]
      })
      t.strictSame(broken, [], title)
    }
    target.clip.resume()
    return
  }
  t.fail(`${url} changed in each of ${MAX_ATTEMPTS} attempts`)
}

function requestOf(url: string, { method = 'GET', query = '', headers = {} }: Row): CurlRequest {
  return { url: url + query, method, headers }
}

/** @returns one sentence for each difference from what a row demands, and from what all replies have in common */
function violations(row: Row, reply: CurlReply, known: Known, target: DeliveryTarget): string[] {
  const { method = 'GET', status, expected = {}, decode = (body: Buffer) => body } = row
  const found: string[] = []
  const demand = (isKept: boolean, sentence: string) => {
    if (!isKept) found.push(sentence)
  }
  const { headers, body } = reply
  demand(reply.status === status, `status ${reply.status}, not ${status}`)
  demand(reply.version === target.version, `HTTP/${reply.version}`)
  const common = {
    'access-control-allow-origin': '*',
    'set-cookie': null,
    location: null,
    'transfer-encoding': null,
    date: / GMT$/,
  }
  for (const [header, value] of Object.entries({ ...common, ...expected })) {
    const seen = headers[header]
    const isKept =
      value instanceof RegExp ? value.test(seen ?? '') : (seen ?? null) === (value ?? null)
    demand(isKept, `${header}: ${seen}, not ${String(value)}`)
  }
  const isEmpty = method !== 'GET' || status === 304
  if (!isEmpty) demand(headers['content-length'] === `${body.length}`, 'wrong Content-Length')
  const whole = row.body ?? (isEmpty ? Buffer.alloc(0) : known.body)
  const isRight =
    whole instanceof RegExp ? whole.test(body.toString()) : decoded(decode, body).equals(whole)
  demand(isRight, `another body of ${body.length} bytes`)
  return found
}

function decoded(decode: (body: Buffer) => Buffer, body: Buffer): Buffer {
  try {
    return decode(body)
  } catch (error) {
    return Buffer.from(String(error))
  }
}

async function checkUnknown(t: Test, target: DeliveryTarget): Promise<void> {
  const { url, hint } = await readPlaylist(target)
  const unknown = [
    ['no-such-file.ts', 'FILE_NOT_FOUND'],
    ['no-such-list.m3u8', 'FILE_NOT_FOUND'],
    [hint.replace(/\d+\.m4s$/, '99999999.m4s'), 'FILE_NOT_FOUND'],
    ['../no-such-stream/playlist.m3u8', 'STREAM_NOT_FOUND'],
    ['../no-such-stream/playlist.m3u8?_HLS_msn=1', 'STREAM_NOT_FOUND'],
  ] as const
  const urls = unknown.map(([path]) => new URL(path, url).href)
  const gets = await curl(
    target.flags,
    urls.map((url) => ({ url })),
  )
  const heads = await curl(
    target.flags,
    urls.map((url) => ({ url, method: 'HEAD' })),
  )
  for (const [index, [path, code]] of unknown.entries()) {
    const [get, head] = [gets[index]!, heads[index]!]
    t.match(get.status, 404, path)
    t.match(JSON.parse(get.body.toString()), { success: false, error: /./, code }, path)
    t.match(get.headers, {
      'content-type': /^application\/json/,
      'cache-control': 'public, max-age=1',
      'access-control-allow-origin': '*',
    })
    t.ok(get.firstByteMs < AT_ONCE_MS, `${get.firstByteMs} ms`)
    t.equal(head.status, 404, `HEAD ${path}`)
    t.equal(head.body.length, 0)
    t.strictSame({ ...head.headers, date: '' }, { ...get.headers, date: '' })
  }
}

async function checkDirectives(t: Test, target: DeliveryTarget): Promise<void> {
  const { url, lastSequence } = await readPlaylist(target)
  const refused = [
    ['_HLS_part=0', 'DIRECTIVES_INVALID'],
    ['_HLS_msn=x', 'DIRECTIVES_INVALID'],
    ['_HLS_msn=-1', 'DIRECTIVES_INVALID'],
    [`_HLS_msn=${lastSequence + 100}`, 'MEDIA_TOO_FAR_AHEAD'],
    [`_HLS_msn=${lastSequence + 2}&_HLS_part=1000`, 'MEDIA_TOO_FAR_AHEAD'],
  ] as const
  const replies = await curl(
    target.flags,
    refused.map(([query]) => ({ url: `${url}?${query}` })),
  )
  for (const [index, [query, code]] of refused.entries()) {
    const reply = replies[index]!
    t.equal(reply.status, 400, query)
    t.match(JSON.parse(reply.body.toString()), { success: false, code }, query)
    t.equal(reply.headers['access-control-allow-origin'], '*', query)
    t.ok(reply.firstByteMs < AT_ONCE_MS, `${reply.firstByteMs} ms`)
  }
}

async function checkReloads(t: Test, target: DeliveryTarget): Promise<void> {
  const { url, firstSequence, targetSec } = await readPlaylist(target)
  for (const sequence of [0, firstSequence]) {
    const reply = await one(target, { url: `${url}?_HLS_msn=${sequence}` })
    t.equal(reply.status, 200, 'media that is listed, or no longer')
  }
  for (let reload = 0; reload < 3; reload++) {
    const { next } = await readPlaylist(target)
    const reply = await one(target, {
      url: `${url}?${next}&_HLS_skip=NO&x=1`,
      headers: GZIP,
    })
    t.match(reply, {
      status: 200,
      headers: {
        'cache-control': `public, max-age=0, s-maxage=${6 * targetSec}`,
        'content-encoding': 'gzip',
      },
    })
    const [, sequence, part] = /msn=(\d+)&_HLS_part=(\d+)/.exec(next)!.map(Number)
    const { segments } = parseMediaPlaylist(gunzipSync(reply.body).toString(), url)
    const segment = segments.find((segment) => segment.sequence === sequence)
    const isListed = (segment?.parts.length ?? 0) > part! || segment?.uri !== undefined
    t.ok(isListed, `${next} is listed`)
  }
  const { lastSequence, lastParts } = await readPlaylist(target)
  const reply = await one(target, { url: `${url}?_HLS_msn=${lastSequence}&_HLS_part=${lastParts}` })
  t.equal(reply.status, 200)
  t.ok(
    parseMediaPlaylist(reply.body.toString(), url).segments.at(-1)!.sequence > lastSequence,
    'a part beyond the last of a segment is the first of the next (6.2.5.2)',
  )
}

async function checkHint(t: Test, target: DeliveryTarget): Promise<void> {
  for (const method of ['GET', 'HEAD'] as const) {
    const { hint, targetSec } = await readPlaylist(target)
    const held = await one(target, { url: hint, method })
    const later = await one(target, { url: hint })
    t.match(held, {
      status: 200,
      headers: {
        'content-type': 'video/mp4',
        'cache-control': `public, max-age=${6 * targetSec}, immutable`,
        'content-length': `${later.body.length}`,
        etag: later.headers['etag'],
      },
    })
    t.ok(held.body.equals(method === 'GET' ? later.body : Buffer.alloc(0)), method)
  }
}

async function one({ flags }: DeliveryTarget, request: CurlRequest): Promise<CurlReply> {
  const [reply] = await curl(flags, [request])
  return reply!
}

/** Reads the current playlist and picks files that stay for the next seconds. */
async function readPlaylist(target: DeliveryTarget) {
  const { playlistUrl: url } = target
  const tsUrl = new URL('playlist.m3u8', url).href
  const [reply, tsReply] = await curl(target.flags, [{ url }, { url: tsUrl }])
  const text = reply!.body.toString()
  const ts = parseMediaPlaylist(tsReply!.body.toString(), tsUrl)
  const playlist = parseMediaPlaylist(text, url)
  const complete = playlist.segments.filter(({ uri }) => uri !== undefined)
  const last = complete.at(-1)!
  const open = playlist.segments.find(({ sequence }) => sequence > last.sequence)
  const resolve = (uri: string) => new URL(uri, url).href
  const hint = findTag(playlist, 'EXT-X-PRELOAD-HINT')
  return {
    url,
    text,
    targetSec: playlist.targetSec,
    firstSequence: complete[0]!.sequence,
    lastSequence: last.sequence,
    lastParts: last.parts.length,
    /** Directives of the next part. */
    next: `_HLS_msn=${last.sequence + 1}&_HLS_part=${open?.parts.length ?? 0}`,
    hint: hint === undefined ? '' : resolve(unquoted(hint, 'URI') ?? ''),
    files: {
      playlist: url,
      master: resolve('master.m3u8'),
      segment: resolve(complete.at(-2)!.uri!),
      part: resolve(last.parts.at(-1)?.uri ?? ''),
      init: last.map?.url ?? '',
      tsPlaylist: tsUrl,
      tsSegment: ts.segments.at(-2)!.url!,
    } satisfies Record<FileName, string>,
  }
}
