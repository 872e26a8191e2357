/**
 * Faults of servers, caches and encoders, each with the rule that finds it.
 *
 * @module
 */
import { gzipSync } from 'node:zlib'
import { withCounterJump, withShiftedTimestamps } from './broken-media.ts'
import type { ProxyReply, Tamper } from '../check/fault-proxy.ts'
import type { MultivariantPlaylist } from './faulty-stream.ts'
import {
  eachLine,
  editHeaders,
  editMedia,
  editReply,
  editText,
  isMedia,
  isMultivariant,
  isPlaylist,
  isRead,
  isSecondAudio,
  newestSequence,
  redirect,
  refuse,
  sequenceOf,
  serialOf,
} from './tamper.ts'

export interface Fault {
  readonly title: string
  /** Id of the rule that finds it. */
  readonly rule: string
  /** Rules that the same fault necessarily breaks. */
  readonly follows?: readonly string[]
  /** Where the fault shows; default `master.m3u8`. */
  readonly playlist?: MultivariantPlaylist
  /** Whether the encoder has to reconnect for the fault to show. */
  readonly reconnects?: boolean
  /** Duration of its check; default 8. */
  readonly seconds?: number
  /** A new instance for each run, since some remember what they saw. */
  readonly tamper: () => Tamper
}

const every = (count: number, remainder = 0) => ({
  segment: (request: Parameters<typeof sequenceOf>[0]) =>
    (sequenceOf(request) ?? Number.NaN) % count === remainder,
  part: (request: Parameters<typeof serialOf>[0]) =>
    (serialOf(request) ?? Number.NaN) % count === remainder,
})

/** Replaces in all media playlists. */
const replace = (pattern: RegExp, by: string) => () =>
  editText(isPlaylist, (text) => text.replace(pattern, by))

/** Replaces in the multivariant playlist. */
const claim = (pattern: RegExp, by: string) => () =>
  editText(isMultivariant, (text) => text.replace(pattern, by))

const DATERANGE = '#EXT-X-DATERANGE:ID="ad",START-DATE="2026-01-01T00:00:00.000Z"'

const PLAYLIST_SYNTAX: readonly Fault[] = [
  {
    title: 'the first line is no #EXTM3U',
    rule: 'NOT_EXTM3U',
    tamper: replace(/^#EXTM3U\n/, ''),
  },
  {
    title: 'a byte order mark begins playlists',
    rule: 'PLAYLIST_ENCODING',
    tamper: replace(/^/, '\ufeff'),
  },
  {
    title: 'EXT-X-VERSION is too low',
    rule: 'VERSION_TOO_LOW',
    tamper: replace(/(#EXT-X-VERSION):\d+/, '$1:2'),
  },
  {
    title: 'EXT-X-TARGETDURATION is missing',
    rule: 'TARGETDURATION_MISSING',
    tamper: replace(/#EXT-X-TARGETDURATION:.*\n/, ''),
  },
  {
    title: 'a sliding playlist claims to be an EVENT',
    rule: 'PLAYLIST_TYPE_BROKEN',
    tamper: replace(/(#EXT-X-MEDIA-SEQUENCE)/, '#EXT-X-PLAYLIST-TYPE:EVENT\n$1'),
  },
  {
    title: 'two date ranges with one ID differ',
    rule: 'DATERANGE_CONFLICT',
    tamper: replace(/(?=#EXT-X-PROGRAM)/, `${DATERANGE},DURATION=1\n${DATERANGE},DURATION=2\n`),
  },
  {
    title: 'a date range changes under its ID',
    rule: 'DATERANGE_CHANGED',
    tamper: () =>
      editText(isPlaylist, (text) =>
        text.replace(
          /(?=#EXT-X-PROGRAM)/,
          `${DATERANGE},PLANNED-DURATION=${isOdd(text) ? 1 : 2}\n`,
        ),
      ),
  },
]

const TIMELINE: readonly Fault[] = [
  {
    title: 'the media sequence number goes back in every other version',
    rule: 'MEDIA_SEQUENCE_BACK',
    follows: [
      ...['REPORT_WRONG', 'SEGMENT_CHANGED', 'BLOCKING_TOO_EARLY', 'BLOCKING_WITHOUT_PART'],
      // Media is taken for the neighbor of another.
      'TIMESTAMPS_BREAK',
    ],
    tamper: () =>
      editText(isPlaylist, (text) =>
        !isOdd(text)
          ? text
          : text.replace(
              /(#EXT-X-MEDIA-SEQUENCE):(\d+)/,
              (_, name: string, number: string) => `${name}:${Number(number) - 5}`,
            ),
      ),
  },
  {
    title: 'the discontinuity sequence number changes without a discontinuity',
    rule: 'DISCONTINUITY_SEQUENCE_WRONG',
    tamper: () =>
      editText(isPlaylist, (text) =>
        !isOdd(text) ? text : text.replace(/(#EXT-X-DISCONTINUITY-SEQUENCE):(\d+)/, '$1:7$2'),
      ),
  },
  {
    title: 'EXTINF of a listed segment changes',
    rule: 'SEGMENT_CHANGED',
    follows: [
      'SEGMENT_LENGTH',
      'PARTS_UNLIKE_SEGMENT',
      'DATE_MISSES_EXTINF',
      'PARTS_TOO_LONG_LISTED',
    ],
    tamper: () =>
      editText(isPlaylist, (text) =>
        !isOdd(text) ? text : text.replaceAll(/#EXTINF:[\d.]+/g, '#EXTINF:1.3'),
      ),
  },
  {
    title: 'the URIs of two neighbors are swapped',
    rule: 'SEGMENT_CHANGED',
    follows: ['RENDITIONS_APART'],
    tamper: () =>
      editText(isPlaylist, (text) =>
        text.replace(/^(\S+-\d+\.m4s)$([^]*?)^(\S+-\d+\.m4s)$/m, '$3$2$1'),
      ),
  },
  {
    title: 'a discontinuity is not marked',
    rule: 'TIMESTAMPS_BREAK',
    follows: [
      'DISCONTINUITY_SEQUENCE_WRONG',
      'DATE_MISSES_EXTINF',
      'RENDITIONS_APART',
      // The first part after a discontinuity has no hint.
      'HINT_MISSING',
    ],
    reconnects: true,
    seconds: 24,
    tamper: replace(/#EXT-X-DISCONTINUITY\n/g, ''),
  },
  {
    title: 'program date times of a rendition are 3 s off',
    rule: 'RENDITIONS_APART',
    follows: ['DATES_OF_RENDITIONS_DIFFER', 'RENDITION_BEHIND'],
    tamper: () => editText(isSecondAudio, (text) => moveDates(text, -3000)),
  },
  {
    title: 'program date times are an hour off',
    rule: 'DATE_OFF_CLOCK',
    tamper: () => editText(isPlaylist, (text) => moveDates(text, 3_600_000)),
  },
  {
    title: 'program date times jump between segments',
    rule: 'DATE_MISSES_EXTINF',
    follows: ['RENDITIONS_APART'],
    tamper: () =>
      editText(isPlaylist, (text) =>
        moveDates(text, (date) => (date.getUTCSeconds() % 2 === 0 ? 700 : 0)),
      ),
  },
  {
    title: 'a rendition has no program date times',
    rule: 'DATES_OF_RENDITIONS_DIFFER',
    follows: ['LOW_LATENCY_WITHOUT_DATES'],
    tamper: () =>
      editText(isSecondAudio, (text) => text.replaceAll(/#EXT-X-PROGRAM-DATE-TIME:.*\n/g, '')),
  },
  {
    title: 'the playlist lists fewer than three target durations',
    rule: 'WINDOW_TOO_SHORT',
    tamper: () =>
      editText(isPlaylist, (text) => {
        const [head = '', ...segments] = text.split(/(?=#EXT-X-PROGRAM-DATE-TIME)/)
        const dropped = Math.max(0, segments.length - 3)
        const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)![1]) + dropped
        return (
          head.replace(/(#EXT-X-MEDIA-SEQUENCE):\d+/, `$1:${first}`) +
          segments.slice(dropped).join('')
        )
      }),
  },
  {
    title: 'a playlist freezes',
    rule: 'PLAYLIST_STALE',
    follows: ['PARTS_STALE', 'BLOCKING_TOO_EARLY', 'BLOCKING_WITHOUT_PART'],
    tamper: () => {
      const frozen = new Map<string, string>()
      return async (request, origin) =>
        editText(isPlaylist, (text) => {
          const name = request.url.replace(/\?.*/, '')
          if (!frozen.has(name)) frozen.set(name, text)
          return frozen.get(name)!
        })(request, origin)
    },
  },
]

const TARGET_DURATIONS: readonly Fault[] = [
  {
    title: 'EXT-X-TARGETDURATION changes',
    rule: 'TARGETDURATION_CHANGED',
    follows: ['TARGETDURATIONS_DIFFER'],
    tamper: () =>
      editText(isPlaylist, (text) => {
        const held = text.replace(/,HOLD-BACK=\d+/, ',HOLD-BACK=6')
        return isOdd(text) ? held.replace(/(#EXT-X-TARGETDURATION):\d+/, '$1:2') : held
      }),
  },
  {
    title: 'EXT-X-TARGETDURATION differs between renditions',
    rule: 'TARGETDURATIONS_DIFFER',
    tamper: () => async (request, origin) => {
      const held = editText(isPlaylist, (text) => text.replace(/,HOLD-BACK=\d+/, ',HOLD-BACK=6'))
      return editText(isSecondAudio, (text) => text.replace(/(#EXT-X-TARGETDURATION):\d+/, '$1:2'))(
        request,
        (passed) => held(passed, origin),
      )
    },
  },
  {
    title: 'segments are longer than the target duration',
    rule: 'SEGMENT_OVER_TARGET',
    follows: [
      'SEGMENT_LENGTH',
      // Media that claims to be longer has to stay for longer.
      'GONE_TOO_EARLY',
      'PARTS_UNLIKE_SEGMENT',
      'DATE_MISSES_EXTINF',
      'PARTS_TOO_LONG_LISTED',
    ],
    tamper: replace(/(#EXTINF:\d+)\.0/g, '$1.6'),
  },
  {
    title: 'parts are longer than PART-TARGET',
    rule: 'PART_OVER_TARGET',
    tamper: replace(/PART-TARGET=[\d.]+/, 'PART-TARGET=0.15'),
  },
  {
    title: 'parts are much shorter than PART-TARGET',
    rule: 'PART_TOO_SHORT',
    tamper: () =>
      editText(isPlaylist, (text) =>
        text
          .replace(/PART-TARGET=[\d.]+/, 'PART-TARGET=0.3')
          .replace(/PART-HOLD-BACK=[\d.]+/, 'PART-HOLD-BACK=0.9'),
      ),
  },
  {
    title: 'PART-TARGET changes',
    rule: 'PART_TARGET_CHANGED',
    tamper: () =>
      editText(isPlaylist, (text) => {
        const held = text.replace(/PART-HOLD-BACK=[\d.]+/, 'PART-HOLD-BACK=0.9')
        return isOdd(text) ? held.replace(/PART-TARGET=[\d.]+/, 'PART-TARGET=0.22') : held
      }),
  },
  {
    title: 'EXT-X-SERVER-CONTROL changes',
    rule: 'SERVER_CONTROL_CHANGED',
    follows: ['SERVER_CONTROLS_DIFFER'],
    tamper: () =>
      editText(isPlaylist, (text) =>
        isOdd(text) ? text.replace(/,HOLD-BACK=\d+/, ',HOLD-BACK=9') : text,
      ),
  },
  {
    title: 'EXT-X-SERVER-CONTROL differs between renditions',
    rule: 'SERVER_CONTROLS_DIFFER',
    tamper: () => editText(isSecondAudio, (text) => text.replace(/,HOLD-BACK=\d+/, ',HOLD-BACK=9')),
  },
]

const LOW_LATENCY: readonly Fault[] = [
  {
    title: 'PART-HOLD-BACK is less than two part targets',
    rule: 'PART_HOLD_BACK_TOO_SHORT',
    tamper: replace(/PART-HOLD-BACK=[\d.]+/, 'PART-HOLD-BACK=0.3'),
  },
  {
    title: 'PART-HOLD-BACK is missing',
    rule: 'PART_HOLD_BACK_TOO_SHORT',
    tamper: replace(/PART-HOLD-BACK=[\d.]+,/, ''),
  },
  {
    title: 'PART-HOLD-BACK is less than three part targets',
    rule: 'PART_HOLD_BACK_SHORT',
    tamper: replace(/PART-HOLD-BACK=[\d.]+/, 'PART-HOLD-BACK=0.5'),
  },
  {
    title: 'HOLD-BACK is less than three target durations',
    rule: 'HOLD_BACK_TOO_SHORT',
    tamper: replace(/,HOLD-BACK=\d+/, ',HOLD-BACK=1'),
  },
  {
    title: 'EXT-X-PART-INF is missing',
    rule: 'PART_INF_MISSING',
    tamper: replace(/#EXT-X-PART-INF.*\n/, ''),
  },
  {
    title: 'the preload hint is missing',
    rule: 'HINT_MISSING',
    tamper: replace(/#EXT-X-PRELOAD-HINT.*\n/, ''),
  },
  {
    title: 'the preload hint names a part that never comes',
    rule: 'HINT_NOT_KEPT',
    tamper: replace(/(#EXT-X-PRELOAD-HINT.*-p\d+)/, '$10'),
  },
  {
    title: 'rendition reports are missing',
    rule: 'REPORT_MISSING',
    tamper: replace(/#EXT-X-RENDITION-REPORT.*\n/, ''),
  },
  {
    title: 'LAST-MSN of a rendition report is ahead of the rendition',
    rule: 'REPORT_WRONG',
    tamper: () =>
      editText(isPlaylist, (text) =>
        text.replace(/LAST-MSN=(\d+)/, (_, number: string) => `LAST-MSN=${Number(number) + 3}`),
      ),
  },
  {
    title: 'all parts are marked INDEPENDENT',
    rule: 'PART_NOT_INDEPENDENT',
    tamper: () =>
      editText(
        isPlaylist,
        eachLine((line) =>
          line.startsWith('#EXT-X-PART:') && !line.includes('INDEPENDENT')
            ? `${line},INDEPENDENT=YES`
            : line,
        ),
      ),
  },
]

const MEDIA: readonly Fault[] = [
  {
    title: 'no part is marked INDEPENDENT',
    rule: 'PART_NOT_MARKED',
    follows: ['INDEPENDENT_MISSING'],
    tamper: replace(/,INDEPENDENT=YES/g, ''),
  },
  {
    title: 'EXTINF is 0.3 s longer than the media',
    rule: 'SEGMENT_LENGTH',
    follows: [
      ...['PARTS_UNLIKE_SEGMENT', 'DATE_MISSES_EXTINF', 'PARTS_TOO_LONG_LISTED'],
      'GONE_TOO_EARLY',
    ],
    tamper: replace(/(#EXTINF:\d+)\.0/g, '$1.3'),
  },
  {
    title: 'a segment has the bytes of the one before',
    rule: 'TIMESTAMPS_BREAK',
    follows: ['PARTS_DIFFER', 'RENDITIONS_APART'],
    tamper: () =>
      redirect(every(2).segment, (request) => ({
        ...request,
        url: request.url.replace(/\d+(?=\.m4s$)/, (number) => String(Number(number) - 1)),
      })),
  },
  {
    title: 'a segment ends inside a box',
    rule: 'BOXES_BROKEN',
    follows: ['PART_BYTES_DIFFER'],
    tamper: () => editMedia(every(1).segment, (bytes) => bytes.subarray(0, -100)),
  },
  {
    title: 'EXT-X-MAP is missing',
    rule: 'MAP_MISSING',
    // The other tags need less.
    follows: ['VERSION_TOO_HIGH'],
    tamper: replace(/#EXT-X-MAP.*\n/g, ''),
  },
]

const TRANSPORT_STREAM = [
  {
    title: 'continuity counters jump inside a segment',
    rule: 'TS_CONTINUITY',
    follows: ['COUNTERS_BREAK'],
    tamper: () => editMedia(every(1).segment, withCounterJump),
  },
  {
    title: 'a segment is cut short',
    rule: 'SEGMENT_LENGTH',
    follows: ['COUNTERS_BREAK'],
    tamper: () => editMedia(every(1).segment, (bytes) => bytes.subarray(0, -20 * 188)),
  },
  {
    title: 'a segment ends inside a packet',
    rule: 'TS_SYNC',
    tamper: () => editMedia(every(1).segment, (bytes) => bytes.subarray(0, -100)),
  },
  {
    title: 'timestamps of a segment are 10 s off',
    rule: 'TIMESTAMPS_BREAK',
    follows: ['RENDITIONS_APART'],
    tamper: () => editMedia(every(2).segment, (bytes) => withShiftedTimestamps(bytes, 900_000)),
  },
].map((fault): Fault => ({ ...fault, playlist: 'ts.m3u8' }))

const HTTP: readonly Fault[] = [
  {
    title: 'a part is not found',
    rule: 'MEDIA_NOT_FETCHED',
    follows: ['HINT_NOT_FETCHED'],
    tamper: () => refuse(every(7).part),
  },
  {
    title: 'a segment is not found',
    rule: 'MEDIA_NOT_FETCHED',
    follows: ['GONE_TOO_EARLY'],
    tamper: () => refuse((request) => isRead(request) && every(1).segment(request)),
  },
  {
    title: 'media is gone as soon as the playlist drops it',
    rule: 'GONE_TOO_EARLY',
    seconds: 14,
    tamper: () => {
      let first = 0
      return async (request, origin) => {
        if (sequenceOf(request)! < first) return refuse(() => true)(request, origin)
        return editText(isPlaylist, (text) => {
          first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1])
          return text
        })(request, origin)
      }
    },
  },
  {
    title: 'a part comes in two halves, half a second apart',
    rule: 'MEDIA_TRICKLED',
    tamper: () => editReply(every(5).part, (reply) => ({ ...reply, pauseMs: 500 })),
  },
  {
    title: 'a blocking request is answered at once, with the version before',
    rule: 'BLOCKING_WITHOUT_PART',
    follows: ['BLOCKING_TOO_EARLY', 'FAR_AHEAD_NOT_REFUSED', 'BLOCKING_NOT_CACHED'],
    tamper: () => {
      const answered = new Set<string>()
      const newest = new Map<string, ProxyReply>()
      return async (request, origin) => {
        const path = request.url.replace(/\?.*/, '')
        const known = newest.get(path)
        if (/_HLS_msn/.test(request.url) && known !== undefined && !answered.has(request.url)) {
          answered.add(request.url)
          return known
        }
        const reply = await origin(request)
        if (isPlaylist(request) && reply.status === 200) newest.set(path, reply)
        return reply
      }
    },
  },
  {
    title: 'a request far ahead is not refused',
    rule: 'FAR_AHEAD_NOT_REFUSED',
    tamper: () => async (request, origin) => {
      const reply = await origin(request)
      return isPlaylist(request) && reply.status === 400 && !request.url.includes('?_HLS_part')
        ? origin({ ...request, url: request.url.replace(/\?.*/, '') })
        : reply
    },
  },
  {
    title: 'a part without a media sequence number is not refused',
    rule: 'PART_WITHOUT_SEQUENCE',
    tamper: () =>
      redirect(
        ({ url }) => url.includes('_HLS_part') && !url.includes('_HLS_msn'),
        (request) => ({ ...request, url: request.url.replace(/\?.*/, '') }),
      ),
  },
  {
    title: 'CORS headers of playlists are missing',
    rule: 'CORS_PLAYLIST',
    tamper: () => editHeaders(isPlaylist, withoutCors),
  },
  {
    title: 'CORS headers of media are missing',
    rule: 'CORS_MEDIA',
    tamper: () =>
      editHeaders((request) => isMedia(request) && request.method === 'GET', withoutCors),
  },
  {
    title: 'preflight requests are refused',
    rule: 'CORS_PREFLIGHT',
    tamper: () => refuse(({ method }) => method === 'OPTIONS', 405),
  },
  {
    title: 'media may not be cached',
    rule: 'MEDIA_NOT_CACHED',
    tamper: () => editHeaders(isMedia, (headers) => ({ ...headers, 'cache-control': 'no-store' })),
  },
  {
    title: 'blocking requests are refused',
    rule: 'BLOCKING_REFUSED',
    tamper: () => refuse(({ url }) => url.includes('_HLS_msn'), 400),
  },
  {
    title: 'a blocking request for a listed segment is refused',
    rule: 'OLD_SEQUENCE_REFUSED',
    tamper: () => {
      let newest = Infinity
      return async (request, origin) => {
        const asked = Number(/_HLS_msn=(\d+)/.exec(request.url)?.[1])
        if (asked <= newest - 1) return refuse(() => true, 400)(request, origin)
        return editText(isPlaylist, (text) => {
          newest = newestSequence(text)
          return text
        })(request, origin)
      }
    },
  },
  {
    title: 'a playlist is not found',
    rule: 'PLAYLIST_NOT_FETCHED',
    tamper: () => refuse(isSecondAudio),
  },
  {
    title: 'playlists have the MIME type of text',
    rule: 'PLAYLIST_TYPE',
    tamper: () =>
      editHeaders(isPlaylist, (headers) => ({ ...headers, 'content-type': 'text/plain' })),
  },
  {
    title: 'segments have the MIME type of bytes',
    rule: 'MEDIA_TYPE',
    tamper: () => editHeaders(isMedia, (headers) => ({ ...headers, 'content-type': 'text/html' })),
  },
  {
    title: 'playlists are compressed although nobody asked',
    rule: 'GZIP_UNASKED',
    tamper: () =>
      editReply(
        (request) => isPlaylist(request) && !/gzip/.test(request.headers['accept-encoding'] ?? ''),
        (reply) => ({
          ...reply,
          body: gzipSync(reply.body),
          headers: { ...reply.headers, 'content-encoding': 'gzip' },
        }),
      ),
  },
  {
    title: 'playlists are never compressed',
    rule: 'GZIP_NOT_OFFERED',
    tamper: () =>
      redirect(isPlaylist, (request) => ({
        ...request,
        headers: { ...request.headers, 'accept-encoding': 'identity' },
      })),
  },
  {
    title: 'Range is ignored',
    rule: 'RANGE_UNSUPPORTED',
    tamper: () =>
      redirect(isMedia, ({ headers: { range, ...headers }, ...request }) => {
        void range
        return { ...request, headers }
      }),
  },
  {
    title: 'HEAD is refused',
    rule: 'HEAD_UNSUPPORTED',
    tamper: () => refuse(({ method }) => method === 'HEAD'),
  },
  {
    title: 'every name is found',
    rule: 'UNKNOWN_FOUND',
    tamper: () => async (request, origin) => {
      const reply = await origin(request)
      return isRead(request) && reply.status === 404 ? { ...reply, status: 200 } : reply
    },
  },
  {
    title: 'playlists may be cached for a day',
    rule: 'PLAYLIST_CACHED_TOO_LONG',
    tamper: () =>
      editHeaders(isPlaylist, (headers) => ({
        ...headers,
        'cache-control': 'public, max-age=86400',
      })),
  },
]

const MULTIVARIANT: readonly Fault[] = [
  {
    title: 'CODECS names another codec',
    rule: 'CODECS_INCOMPLETE',
    tamper: claim(/avc1\.[0-9a-f]+/, 'hvc1.1.6.L93.B0'),
  },
  { title: 'CODECS is missing', rule: 'CODECS_MISSING', tamper: claim(/CODECS="[^"]*",/, '') },
  {
    title: 'RESOLUTION is another one',
    rule: 'RESOLUTION_WRONG',
    tamper: claim(/RESOLUTION=\d+x\d+/, 'RESOLUTION=1920x1080'),
  },
  {
    title: 'FRAME-RATE is another one',
    rule: 'FRAME_RATE_WRONG',
    tamper: claim(/FRAME-RATE=[\d.]+/, 'FRAME-RATE=60.000'),
  },
  {
    title: 'BANDWIDTH is less than the peak',
    rule: 'BANDWIDTH_BELOW_PEAK',
    follows: ['AVERAGE_BANDWIDTH_LOW'],
    tamper: claim(/BANDWIDTH=\d+/g, 'BANDWIDTH=5000'),
  },
  {
    title: 'VIDEO-RANGE claims PQ',
    rule: 'VIDEO_RANGE_WRONG',
    tamper: claim(/,AUDIO="/, ',VIDEO-RANGE=PQ,AUDIO="'),
  },
  {
    title: 'a variant names a group that is not there',
    rule: 'GROUP_UNDEFINED',
    follows: ['GROUP_UNUSED'],
    tamper: claim(/,AUDIO="audio"/, ',AUDIO="other"'),
  },
  {
    title: 'two renditions of a group have the same name',
    rule: 'NAME_REPEATED',
    tamper: claim(/NAME="French"/, 'NAME="English"'),
  },
]

export const FAULTS: readonly Fault[] = [
  ...PLAYLIST_SYNTAX,
  ...TIMELINE,
  ...TARGET_DURATIONS,
  ...LOW_LATENCY,
  ...MEDIA,
  ...TRANSPORT_STREAM,
  ...HTTP,
  ...MULTIVARIANT,
]

function withoutCors(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !name.startsWith('access-control-')),
  )
}

/** Whether the newest complete segment has an odd number, which changes every second. */
function isOdd(text: string): boolean {
  return newestSequence(text) % 2 === 1
}

/** Moves all program date times. */
function moveDates(text: string, by: number | ((date: Date) => number)): string {
  return text.replaceAll(/(#EXT-X-PROGRAM-DATE-TIME):(\S+)/g, (_, name: string, text: string) => {
    const date = new Date(text)
    const ms = typeof by === 'number' ? by : by(date)
    return `${name}:${new Date(date.getTime() + ms).toISOString()}`
  })
}
