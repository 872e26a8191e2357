/** Each rule on HTTP, broken once in a session of our own. */
import t from 'tap'
import type { Exchange, Reply, RequestRole } from '../../../src/check/exchange.ts'
import { recordSession } from '../session.ts'
import { breaks, judge, keepsAll } from './fixture.ts'

const SESSION = await recordSession()
const CLASSIC = await recordSession({ lowLatency: false })
const TS = await recordSession({ format: 'ts' })

/** Two of the playlists, with the media of the last one, which is edited. */
const EDITED = SESSION.filter(
  ({ url, playlistUrl = 'audio-2' }) => playlistUrl.includes('audio-2') && !url.includes('audio-1'),
)

type Edit = (exchange: Exchange) => Exchange

/** Edits the newest exchange of a role. */
function edit(session: readonly Exchange[], role: RequestRole, change: Edit): Exchange[] {
  const index = session.findLastIndex((exchange) => exchange.role === role)
  return session.with(index, change(session[index]!))
}

const withReply =
  (change: (reply: Reply) => Partial<Reply>): Edit =>
  ({ reply, ...request }) => ({ ...request, reply: { ...reply!, ...change(reply!) } })

const status = (status: number) => withReply(() => ({ status, body: Buffer.alloc(0) }))

/** Replaces headers; undefined removes one. */
const headers = (changes: Readonly<Record<string, string | undefined>>) =>
  withReply((reply) => ({
    headers: Object.fromEntries(
      Object.entries({ ...reply.headers, ...changes }).filter(([, value]) => value !== undefined),
    ) as Record<string, string>,
  }))

const heldFor = (ms: number) =>
  withReply(({ headersAtMs, endedAtMs }) => ({
    headersAtMs: headersAtMs + ms,
    endedAtMs: endedAtMs + ms,
  }))

const fails: Edit = (exchange) => ({
  role: exchange.role,
  method: exchange.method,
  url: exchange.url,
  headers: exchange.headers,
  sentAtMs: exchange.sentAtMs,
  ...(exchange.playlistUrl !== undefined && { playlistUrl: exchange.playlistUrl }),
  failure: 'no reply within 10 s',
})

const CASES: readonly [id: string, role: RequestRole, ...edits: Edit[]][] = [
  ['PLAYLIST_NOT_FETCHED', 'blocking', status(404), status(500)],
  ['PLAYLIST_NOT_FETCHED', 'multivariant', status(403)],
  ['MEDIA_NOT_FETCHED', 'part', status(404)],
  ['MEDIA_NOT_FETCHED', 'segment', status(404)],
  ['REQUEST_FAILED', 'blocking', fails],
  ['REQUEST_FAILED', 'segment', fails],
  ['HINT_NOT_FETCHED', 'part', (part) => status(404)({ ...part, role: 'hint' })],
  ['GONE_TOO_EARLY', 'gone', status(404)],
  [
    'MEDIA_TRICKLED',
    'segment',
    withReply(({ headersAtMs }) => ({ endedAtMs: headersAtMs + 950, longestPauseMs: 40 })),
    withReply(({ headersAtMs }) => ({ endedAtMs: headersAtMs + 1200, longestPauseMs: 1100 })),
  ],
  [
    'MEDIA_TRICKLED',
    'part',
    withReply(({ headersAtMs }) => ({ endedAtMs: headersAtMs + 190, longestPauseMs: 34 })),
  ],
  [
    'BLOCKING_WITHOUT_PART',
    'blocking',
    (exchange) => ({ ...exchange, url: exchange.url.replace(/_part=.*/, '_part=40') }),
  ],
  ['BLOCKING_REFUSED', 'blocking', status(400)],
  ['PART_WITHOUT_SEQUENCE', 'part-without-sequence', status(200), status(404)],
  ['FAR_AHEAD_NOT_REFUSED', 'far-ahead', status(200), status(503)],
  ['OLD_SEQUENCE_REFUSED', 'old-sequence', status(400), heldFor(5000)],
  [
    'PLAYLIST_NOT_IDENTIFIED',
    'multivariant',
    (exchange) =>
      headers({ 'content-type': 'text/plain' })(
        withReply(({ url }) => ({ url: url.replace('.m3u8', '') }))(exchange),
      ),
  ],
  ['PLAYLIST_TYPE', 'blocking', headers({ 'content-type': 'application/x-mpegURL' })],
  ['MEDIA_TYPE', 'segment', headers({ 'content-type': 'text/vnd.trolltech.linguist' })],
  ['CORS_PLAYLIST', 'blocking', headers({ 'access-control-allow-origin': undefined })],
  ['CORS_MEDIA', 'part', headers({ 'access-control-allow-origin': undefined })],
  [
    'CORS_PREFLIGHT',
    'preflight',
    headers({ 'access-control-allow-headers': 'Content-Type' }),
    headers({ 'access-control-allow-origin': undefined }),
    status(405),
  ],
  [
    'PLAYLIST_CACHED_TOO_LONG',
    'playlist',
    headers({ 'cache-control': 'max-age=10' }),
    headers({ 'cache-control': 'max-age=1, s-maxage=10' }),
    headers({ 'cache-control': 'max-age=10, s-maxage=1' }),
    headers({ 'cache-control': 'private, max-age=10' }),
  ],
  [
    'BLOCKING_NOT_CACHED',
    'blocking',
    headers({ 'cache-control': 'no-cache' }),
    headers({ 'cache-control': 'max-age=0' }),
    headers({ 'cache-control': 'max-age=12, s-maxage=0' }),
  ],
  [
    'MEDIA_NOT_CACHED',
    'segment',
    headers({ 'cache-control': 'no-store' }),
    headers({ 'cache-control': 'max-age=60, s-maxage=0' }),
  ],
  ['RANGE_IGNORED', 'segment', (exchange) => ({ ...exchange, headers: { range: 'bytes=0-1879' } })],
  ['RANGE_UNSUPPORTED', 'range', status(200)],
  ['HEAD_UNSUPPORTED', 'head', status(405)],
  ['UNKNOWN_FOUND', 'unknown', status(200)],
  ['GZIP_NOT_OFFERED', 'gzip', headers({ 'content-encoding': undefined })],
  ['GZIP_UNASKED', 'identity', headers({ 'content-encoding': 'gzip' })],
  ['VALIDATOR_MISSING', 'segment', headers({ etag: undefined })],
  ['HTTP2_MISSING', 'blocking', withReply(() => ({ protocol: 'http/1.1' }))],
  [
    'PLAYLIST_REDIRECTED',
    'blocking',
    withReply(({ url }) => ({ url: url.replace('audio-2', 'moved') })),
  ],
  [
    'BLOCKING_LATE',
    'blocking',
    ({ url, sentAtMs, ...rest }) => ({
      ...rest,
      sentAtMs: sentAtMs - 3000,
      url: url.replace(/_msn=(\d+)/, (_, sequence: string) => `_msn=${Number(sequence) - 2}`),
    }),
  ],
  [
    'BLOCKING_HELD_TOO_LONG',
    'blocking',
    ({ sentAtMs, ...rest }) => ({ ...rest, sentAtMs: sentAtMs - 5000 }),
  ],
]

t.test('finds nothing in a session with every probe', async (t) => {
  keepsAll(t, SESSION, 'low latency')
  keepsAll(t, CLASSIC, 'whole segments')
  keepsAll(t, TS, 'whole segments in MPEG-TS')
  const roles = new Set(SESSION.map(({ role }) => role))
  for (const role of ['gone', 'gzip', 'identity', 'head', 'range'] as const) {
    t.ok(roles.has(role), role)
  }
})

for (const [id, role, ...edits] of CASES) {
  t.test(`finds ${id} alone at a request of role ${role}`, async (t) => {
    for (const change of edits) breaks(t, id, edit(EDITED, role, change))
  })
}

t.test('finds nothing where a slow client asks for media that may be gone by then', async (t) => {
  const laterBy =
    (ms: number): Edit =>
    (exchange) =>
      heldFor(ms)(status(404)(exchange))
  for (const [role, dueMs, goneMs] of [
    ['part', 2900, 3500],
    ['segment', 6500, 8500],
    ['gone', 900, 8500],
  ] as const) {
    t.ok(judge(edit(EDITED, role, laterBy(dueMs))).length > 0, `${role}, ${dueMs} ms later`)
    keepsAll(t, edit(EDITED, role, laterBy(goneMs)), `${role}, ${goneMs} ms later`)
  }
})
