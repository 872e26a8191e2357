/**
 * Answers of the API: schemas of `data`, for the OpenAPI document, the tables of docs/api.md and the types of the client.
 *
 * @module
 */
import { Type, type TProperties, type TSchema } from 'typebox'
import { FORMATS, STREAM_STATES } from './schema.ts'

const number = (description: string) => Type.Number({ description })
const integer = (description: string) => Type.Integer({ description })
const text = (description: string) => Type.String({ description })
const time = (description: string) => Type.String({ format: 'date-time', description })

const state = Type.Enum([...STREAM_STATES], {
  description: '`READY`, `STREAMING`, `INTERRUPTED` or `STOPPED`',
})

/** A component of the OpenAPI document. */
const titled = <Fields extends TProperties>(title: string, fields: Fields, description = title) =>
  Type.Object(fields, { title, description })

/** A counter of SRT, absent for encoders of other protocols; `libsrt` is the name of the same figure there. */
const srt = (unit: string, libsrt: string, description: string) =>
  Type.Optional(Type.Number({ 'x-unit': unit, 'x-libsrt': libsrt, description }))

const PLAYBACK_URLS = {
  playlist_url: text(
    'playlist of whole segments in transport stream, for all that is not a player; `master_url` where the stream has no `ts`',
  ),
  master_url: text('multivariant playlist, for players'),
}

export const StartedStream = titled('StartedStream', {
  stream_id: text('id of the stream'),
  status: state,
  srt_url: text('URL for the encoder, with the stream key and the passphrase: a credential'),
  stream_key: text(
    'value of `streamid` for encoders that take it apart from the URL: a credential',
  ),
  passphrase: Type.Optional(text("the stream's own passphrase, if it has one: a credential")),
  expires_at: time('when the stream key expires'),
  ...PLAYBACK_URLS,
})

export const Publisher = titled('Publisher', {
  remote: text('address and port of the encoder'),
  peer_version: Type.Optional(text('of its SRT library')),
  latency_ms: srt(
    'ms',
    'msRcvTsbPdDelay',
    "how long the receiver waits for a missing packet: the larger of the encoder's latency and `SRT_LATENCY_MS` or `latency_ms` of the stream, at most 8000",
  ),
  rtt_ms: srt('ms', 'msRTT', 'smoothed round-trip time; 100 until the first measurement'),
  drift_ms: srt(
    'ms',
    '',
    "drift of the encoder's clock and of the network delay since the connection was established",
  ),
  bitrate_bps: Type.Number({
    'x-unit': 'bit/s',
    'x-libsrt': 'mbpsRecvRate',
    description: 'payload of the last second, retransmissions included',
  }),
  bytes_received: Type.Number({
    'x-unit': 'bytes',
    'x-libsrt': 'byteRecvTotal',
    description:
      'payload, retransmissions included; libsrt adds 44 bytes of headers to each packet',
  }),
  packets_received: srt(
    'packets',
    'pktRecvTotal',
    'received, duplicates and retransmissions included',
  ),
  packets_lost: srt(
    'packets',
    'pktRcvLossTotal',
    'missing when a later packet arrived, whether repaired or not',
  ),
  packets_retransmitted: srt(
    'packets',
    'pktRcvRetransTotal',
    'received packets that were retransmissions',
  ),
  retransmit_ratio: srt('0 to 1', '', '`packets_retransmitted` / `packets_received`'),
  packets_dropped: srt(
    'packets',
    'pktRcvDropTotal',
    'not received in time: the losses that viewers see',
  ),
  packets_belated: srt('packets', 'pktRcvBelated', 'received after they were counted as dropped'),
  packets_duplicate: srt(
    'packets',
    '',
    'received twice: retransmitted without need, or duplicated by the network',
  ),
  packets_undecryptable: srt(
    'packets',
    'pktRcvUndecryptTotal',
    'in clear despite encryption, encrypted without it, or with a key that the encoder has not sent',
  ),
  packets_fec: srt(
    'packets',
    'pktRcvFilterExtraTotal',
    'of a packet filter (FEC), discarded: losses are repaired by retransmission',
  ),
  packets_overflowed: srt('packets', '', 'too far ahead of a missing packet to be buffered'),
  sequence_jumps: srt(
    '',
    '',
    'jumps of the sequence number; packets in between count as lost and dropped',
  ),
  packets_buffered: srt(
    'packets',
    'pktRcvBuf',
    'currently waiting behind a missing packet; packets in order are delivered at once',
  ),
  reorder_tolerance_packets: srt(
    'packets',
    'pktReorderTolerance',
    'packets that may overtake a missing one before it is reported; learned from reordering',
  ),
  acks_sent: srt('packets', 'pktSentACKTotal', ''),
  naks_sent: srt('packets', 'pktSentNAKTotal', 'reports of losses'),
  naks_withheld: srt(
    'packets',
    '',
    'reports of losses not sent, to limit the bandwidth toward the encoder',
  ),
})

export const Track = titled(
  'Track',
  {
    pid: integer('PID in the transport stream of the encoder'),
    kind: Type.Enum(['video', 'audio', 'data'], { description: '`video`, `audio` or `data`' }),
    codec: text('`h264`, `h265`, `aac`, `mp3`, `mp2`, `ac3`, … or `unknown`'),
    codec_string: Type.Optional(text('value of CODECS (RFC 6381)')),
    language: Type.Optional(text('ISO 639 code')),
    width: Type.Optional(integer('width in pixels, of video')),
    height: Type.Optional(integer('height in pixels, of video')),
    frame_rate: Type.Optional(number('frames per second')),
    video_range: Type.Optional(text('`SDR`, `HLG` or `PQ`')),
    closed_captions: Type.Optional(
      Type.Boolean({ description: 'whether the video has contained CEA-608 or CEA-708 captions' }),
    ),
    sample_rate: Type.Optional(integer('samples per second, of audio')),
    channels: Type.Optional(integer('channels, of audio')),
  },
  'an elementary stream of the program',
)

export const ServiceLoad = titled(
  'ServiceLoad',
  {
    loop_delay_ms_p99: number('lateness of the event loop in the last 10 s, 99th percentile'),
    loop_delay_ms_max: number('lateness of the event loop in the last 10 s, maximum'),
    kernel_drops: Type.Optional(
      integer(
        'datagrams for SRT that the kernel dropped since the service started; absent where the system does not tell',
      ),
    ),
    http: Type.Object(
      {
        connections: integer('open HTTP connections'),
        buffered_bytes: integer(
          'memory of replies to slow readers, without segments in the cache; its limit is `HTTP_MAX_BUFFERED_MIB`',
        ),
        refused: integer('connections refused at `HTTP_MAX_CONNECTIONS`'),
        refused_per_address: integer('connections refused at the share of one address'),
        displaced: integer('idle connections closed in favor of new ones'),
        expired: integer('connections closed after 75 s without a complete request'),
        slow: integer('readers disconnected below 4 KiB/s for a minute'),
        refused_streams: integer('HTTP/2 requests refused because too many were open'),
        flooding: integer(
          'HTTP connections closed for floods of resets, frames or tiny pieces of bodies',
        ),
        over_memory: integer('readers disconnected because replies exceeded the memory limit'),
      },
      {
        description:
          'HTTP connections; all but the first two count since the start, on `API_PORT` and `METRICS_PORT` too',
      },
    ),
  },
  'load of the process, the same in every record',
)

const Edge = Type.Object({
  edge: text('its `NODE_URL`, or its host and port'),
  lag_ms: integer('media that the owner listed and it lacked; 0, or one part, if it keeps up'),
})

export const StreamRecord = titled('StreamRecord', {
  stream_id: text('id of the stream'),
  status: state,
  live: Type.Boolean({ description: 'an encoder feeds a playlist that can be played' }),
  started_at: time('when the stream was started'),
  live_since: orNull(time(''), 'since when it is live; null while it is not'),
  publisher: orNull(Publisher, "the encoder's connection, see below; null without an encoder"),
  tracks: Type.Array(Track, { description: 'tracks of the program' }),
  playlist: Type.Object(
    {
      listed_segments: integer('segments that can be fetched'),
      wanted_segments: integer('`HLS_PLAYLIST_SEGMENTS`, or `playlist_segments` of the stream'),
      released_early: integer(
        'segments that left the playlist and went before the time of RFC 8216 6.2.2, for want of memory',
      ),
      gaps: integer('segments that were not stored, for want of memory'),
    },
    { description: 'the main playlist, and shortage of memory since the start' },
  ),
  viewers: integer(
    'estimated viewers: players that requested a media playlist, segment or part in the last 30 s',
  ),
  latency: Type.Optional(
    Type.Object(
      {
        srt_ms: number('latency of the SRT connection'),
        part_ms: number(
          'media that must be complete before players get it: PART-TARGET, or a segment without low latency',
        ),
        hold_back_ms: number('how far from the end players play'),
        expected_ms: number('sum of the three, without encoder and display'),
      },
      { description: 'latency of viewers; absent until the playlist appears' },
    ),
  ),
  queued_bytes: integer(
    'received media that is in no finished segment: behind a missing packet, in a burst, in open PES packets and segments; counts toward `CACHE_MAX_MIB`',
  ),
  totals: Type.Object(
    {
      segments: integer('segments of all renditions'),
      segment_bytes: integer('size of the segments'),
      duration_sec: number('duration of the main rendition'),
      payloads_dropped: integer('SRT packets dropped because their media costs too much CPU'),
      publishers: integer('encoders that connected'),
    },
    { description: 'since the start' },
  ),
  warnings: Type.Array(
    Type.Object({
      code: text('stable code'),
      message: text('what is wrong, what viewers see, what to set'),
    }),
    {
      description: 'what is wrong with the source or its connection; see troubleshooting.md',
    },
  ),
  ...PLAYBACK_URLS,
  playback_token: Type.Boolean({ description: 'whether viewers need a playback token' }),
  options: Type.Object(
    {
      formats: Type.Optional(
        Type.Array(Type.Enum([...FORMATS]), { description: 'in place of `HLS_FORMATS`' }),
      ),
      segment_sec: Type.Optional(number('in place of `HLS_SEGMENT_SEC`')),
      part_ms: Type.Optional(integer('in place of `HLS_PART_MS`')),
      playlist_segments: Type.Optional(integer('in place of `HLS_PLAYLIST_SEGMENTS`')),
      latency_ms: Type.Optional(integer('in place of `SRT_LATENCY_MS`')),
      allow_from: Type.Optional(
        Type.Array(Type.String(), { description: 'where encoders may connect from' }),
      ),
    },
    { description: 'what start-stream gave the stream of its own; empty for a resumed stream' },
  ),
  banned_until: Type.Optional(time('until when `kick` bans encoders; absent without a ban')),
  node: Type.Optional(
    text('node that owns the stream, in a cluster; absent until an encoder has connected'),
  ),
  fence: Type.Optional(
    integer('number of the claim under which that node owns it: a later claim has a higher one'),
  ),
  pending_writes: Type.Optional(integer('changes that Redis has not acknowledged; rarely over 1')),
  edges: Type.Optional(
    Type.Array(Edge, {
      description: 'other nodes and edges that read it for their viewers; absent without any',
    }),
  ),
  stale: Type.Optional(
    Type.Literal(true, {
      description: 'the owner does not answer: all is empty but what the registry has',
    }),
  ),
  service: Type.Optional(ServiceLoad),
})

export const StreamPage = titled('StreamPage', {
  streams: Type.Array(StreamRecord, { description: 'in the order of their ids' }),
  next: orNull(Type.String(), '`after` of the next page; null on the last one'),
  service: Type.Optional(ServiceLoad),
})

export const NodeList = titled('NodeList', {
  nodes: Type.Array(
    Type.Object({
      node: text('id of this run of the process, as in `node` of its streams'),
      url: text('where other nodes reach it'),
      role: text('`all` or `ingest`'),
      live: Type.Boolean({
        description: 'whether its lease holds: otherwise it is gone, and others adopt its streams',
      }),
      streams: integer('running streams that it owns'),
    }),
    { description: 'ingest nodes of the cluster; empty without one' },
  ),
})

function orNull<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Union([schema, Type.Null()], { description })
}
