/**
 * Records of the API: the types of the library, the schemas of responses, the OpenAPI document, the tables of docs/api-reference.md
 * and the types of the client follow from these declarations.
 *
 * @module
 */
import {
  Type,
  type TInteger,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
} from 'typebox'
import { MillraceError } from '../errors.ts'
import type { HttpReport } from '../http/guard/http-report.ts'
import type { Track as MediaTrack } from '../mpegts/track.ts'
import { recorded, STREAM_OPTIONS, type OwnOptions } from './stream-options.ts'
import { orNull, type Declared } from './wire-names.ts'

/**
 * States of a stream. READY: key issued, no encoder yet. STREAMING: an encoder is connected. INTERRUPTED: the encoder
 * disconnected, or has sent no audio or video for 10 s; new media resumes the same playlist. STOPPED: ended; the id may
 * be started again.
 */
export const STREAM_STATES = ['READY', 'STREAMING', 'INTERRUPTED', 'STOPPED'] as const

/** State of a stream: `READY`, `STREAMING`, `INTERRUPTED` or `STOPPED`; docs/api.md says what leads to them. */
export type StreamState = (typeof STREAM_STATES)[number]

/** Reason for the state STOPPED. */
export type StopReason = 'api' | 'grace-expired' | 'key-expired' | 'shutdown'

/**
 * Reason for the state INTERRUPTED: SHUTDOWN by the encoder, idle timeout, bitrate over the limit, CPU cost over the limit,
 * overload of the process, the operator, a drain of the node, or an encoder that sends no media.
 */
const INTERRUPTION_REASONS = [
  'shutdown',
  'timeout',
  'bitrate-exceeded',
  'too-costly',
  'overloaded',
  'kicked',
  'draining',
  'no-media',
] as const

/** How the connection to a listener has ended: by it, by its silence, or by this side. */
export type PushEndReason = 'shutdown' | 'timeout' | 'closed'

/** Why a stream is interrupted, such as `timeout` or `no-media`; docs/api.md says what they mean. */
export type InterruptionReason = (typeof INTERRUPTION_REASONS)[number]

/** Encoders of a stream. */
export const ENCODER_SOURCES = ['main', 'backup'] as const

/** Encoder of a stream: `main` or `backup`. */
export type EncoderSource = (typeof ENCODER_SOURCES)[number]

/** Where the media of a stream comes from, in order of priority: one at a time is on air. */
export type SourceName = EncoderSource | 'slate'

/**
 * Reason for another source on air: the one before sends nothing, one of higher priority sends again, or the operator wants
 * it.
 */
export type SwitchReason = 'lost' | 'recovered' | 'requested'

const number = (description: string) => Type.Number({ description })
const integer = (description: string) => Type.Integer({ description })
const text = (description: string) => Type.String({ description })
/** A `Date`, and on the wire its text in ISO 8601. */
export const time = (description: string) =>
  Type.Unsafe<Date>(Type.String({ format: 'date-time', description }))

const state = Type.Enum([...STREAM_STATES], {
  description: '`READY`, `STREAMING`, `INTERRUPTED` or `STOPPED`',
})

/** A component of the OpenAPI document. */
const titled = <Fields extends TProperties>(title: string, fields: Fields, description = title) =>
  Type.Object(fields, { title, description })

/** A figure of an SRT connection; `libsrt` is the name of the same figure there. */
const srtFigure = (unit: string, libsrt: string, description: string) =>
  Type.Number({ 'x-unit': unit, 'x-libsrt': libsrt, description })

/** The same, absent for encoders of other protocols. */
const srt = (...figure: Parameters<typeof srtFigure>) => Type.Optional(srtFigure(...figure))

/** Where to play a stream. */
const PLAYBACK_URLS = {
  playlistUrl: text(
    'playlist of whole segments in transport stream, for all that is not a player; `master_url` where the stream has no `ts`',
  ),
  masterUrl: text('multivariant playlist, for players'),
}

export const StartedStream = titled('StartedStream', {
  streamId: text('id of the stream'),
  status: state,
  srtUrl: text('URL for the encoder, with the stream key and the passphrase: a credential'),
  streamKey: text('value of `streamid` for encoders that take it apart from the URL: a credential'),
  shortStreamKey: text(
    'the same key in `<stream_id>-` and 22 characters, 27 with a passphrase, for encoders that refuse the long one: a credential',
  ),
  publishUrl: Type.Optional(
    text(
      'URL for encoders that send no stream id, with `publish_port`; a credential if it has a passphrase',
    ),
  ),
  backupSrtUrl: Type.Optional(
    text('URL for the backup encoder, with `backup`: a credential, as the next two'),
  ),
  backupStreamKey: Type.Optional(text('stream key of the backup encoder')),
  backupShortStreamKey: Type.Optional(text('the same key in its short form')),
  passphrase: Type.Optional(text("the stream's own passphrase, if it has one: a credential")),
  expiresAt: time('when the stream key expires'),
  playUrl: Type.Optional(
    text(
      'URL for readers of the transport stream over SRT, with `play`; valid as long as the stream key. A credential if it has a token or a passphrase',
    ),
  ),
  ...PLAYBACK_URLS,
  watchUrl: text('page that plays it in a browser'),
})

export type PlaybackUrls = Declared<TObject<typeof PLAYBACK_URLS>>

/**
 * Answer of start-stream: its URLs and keys, most of them credentials.
 *
 * @interface
 */
export type StartedStream = Declared<typeof StartedStream>

const Line = Type.Object(
  {
    line: integer('its number, 1 to 8'),
    remote: text('address and port'),
    bitrateBps: integer('bit/s of the last second, headers of SRT included'),
    bytesReceived: integer('bytes, headers of SRT included'),
    packetsReceived: integer('media packets, retransmissions included'),
    packetsRetransmitted: integer('retransmissions among them'),
    rttMs: Type.Optional(
      number(
        'round-trip time; over SRTLA as the encoder measures it, absent if it does not report it',
      ),
    ),
    packetsLost: Type.Optional(
      integer(
        'packets missing on the line; over SRTLA as the encoder counts them, absent if it does not report them',
      ),
    ),
  },
  { description: 'a line of a bonded encoder' },
)

const Publisher = titled('Publisher', {
  remote: text('address and port of the encoder'),
  peerVersion: Type.Optional(text('of its SRT library')),
  latencyMs: srt(
    'ms',
    'msRcvTsbPdDelay',
    "how long the receiver waits for a missing packet: the larger of the encoder's latency and `SRT_LATENCY_MS` or `latency_ms` of the stream, at most 8000",
  ),
  rttMs: srt('ms', 'msRTT', 'smoothed round-trip time; 100 until the first measurement'),
  driftMs: srt(
    'ms',
    '',
    "drift of the encoder's clock and of the network delay since the connection was established",
  ),
  bitrateBps: Type.Number({
    'x-unit': 'bit/s',
    'x-libsrt': 'mbpsRecvRate',
    description: 'payload of the last second, retransmissions included',
  }),
  bytesReceived: Type.Number({
    'x-unit': 'bytes',
    'x-libsrt': 'byteRecvTotal',
    description:
      'payload, retransmissions included; libsrt adds 44 bytes of headers to each packet',
  }),
  packetsReceived: srt(
    'packets',
    'pktRecvTotal',
    'received, duplicates and retransmissions included',
  ),
  packetsLost: srt(
    'packets',
    'pktRcvLossTotal',
    'missing when a later packet arrived, whether repaired or not',
  ),
  packetsRetransmitted: srt(
    'packets',
    'pktRcvRetransTotal',
    'received packets that were retransmissions',
  ),
  retransmitRatio: srt('0 to 1', '', '`packets_retransmitted` / `packets_received`'),
  packetsDropped: srt(
    'packets',
    'pktRcvDropTotal',
    'not received in time: the losses that viewers see',
  ),
  packetsBelated: srt('packets', 'pktRcvBelated', 'received after they were counted as dropped'),
  packetsDuplicate: srt(
    'packets',
    '',
    'received twice: retransmitted without need, or duplicated by the network',
  ),
  packetsUndecryptable: srt(
    'packets',
    'pktRcvUndecryptTotal',
    'in clear despite encryption, encrypted without it, or with a key that the encoder has not sent',
  ),
  packetsFec: srt(
    'packets',
    'pktRcvFilterExtraTotal',
    'of a packet filter (FEC), discarded: losses are repaired by retransmission',
  ),
  packetsOverflowed: srt('packets', '', 'too far ahead of a missing packet to be buffered'),
  sequenceJumps: srt(
    '',
    '',
    'jumps of the sequence number; packets in between count as lost and dropped',
  ),
  packetsBuffered: srt(
    'packets',
    'pktRcvBuf',
    'currently waiting behind a missing packet; packets in order are delivered at once',
  ),
  reorderTolerancePackets: srt(
    'packets',
    'pktReorderTolerance',
    'packets that may overtake a missing one before it is reported; learned from reordering',
  ),
  acksSent: srt('packets', 'pktSentACKTotal', ''),
  naksSent: srt('packets', 'pktSentNAKTotal', 'reports of losses'),
  naksWithheld: srt(
    'packets',
    '',
    'reports of losses not sent, to limit the bandwidth toward the encoder',
  ),
  lines: Type.Optional(
    Type.Array(Line, {
      description:
        'lines of an encoder at `SRTLA_PORT`, those of the last 10 s, or of a socket group; absent for other encoders',
    }),
  ),
})

type PublisherFields = Declared<typeof Publisher>

/**
 * What the connection of an encoder over any protocol reports.
 *
 * @interface
 */
export type ConnectionReport = Pick<
  PublisherFields,
  'remote' | 'bitrateBps' | 'bytesReceived' | 'lines'
>

/** Line of a bonded encoder. */
export type LineReport = NonNullable<ConnectionReport['lines']>[number]

/**
 * State and counters of an SRT connection. docs/api-reference.md lists the corresponding names in libsrt.
 *
 * @interface
 */
export type SrtCounters = Required<Omit<PublisherFields, keyof ConnectionReport>>

/** Connection of the encoder, with counters since it was established. Has `SrtCounters` if it is an SRT connection. */
export type PublisherReport = ConnectionReport &
  (SrtCounters | { readonly [Name in keyof SrtCounters]?: undefined })

const Source = titled(
  'Source',
  {
    source: Type.Enum([...ENCODER_SOURCES], { description: '`main` or `backup`' }),
    ready: Type.Boolean({
      description: 'whether it is on air, or has sent a key frame with which it can be',
    }),
    connection: Publisher,
  },
  'an encoder of a stream that is connected',
)

/**
 * An encoder of a stream that is connected.
 *
 * @interface
 */
export type SourceReport = Omit<Declared<typeof Source>, 'connection'> & {
  readonly connection: PublisherReport
}

/** States of a peer that this service calls. WAITING: for the next call, after a failure or the end of a connection. */
const PEER_STATES = ['CALLING', 'CONNECTED', 'WAITING'] as const

export type PeerState = (typeof PEER_STATES)[number]

const Peer = Type.Object(
  {
    remote: text('host and port of its URL'),
    state: Type.Enum([...PEER_STATES], { description: '`CALLING`, `CONNECTED` or `WAITING`' }),
    since: time('since when it is in this state'),
    calls: integer('calls so far'),
    nextCallAt: Type.Optional(time('when it is called next; absent unless it is `WAITING`')),
    error: Type.Optional(
      text('why the latest call failed, or its connection ended; absent while connected'),
    ),
  },
  { description: 'the source of `pull_url`; absent without it' },
)

export type PeerReport = Declared<typeof Peer>

/** Figures of a connection that this service sends to. */
const SENT = {
  peerVersion: text('of its SRT library'),
  latencyMs: srtFigure('ms', 'msRcvTsbPdDelay', 'how long the peer waits for a missing packet'),
  rttMs: srtFigure('ms', 'msRTT', 'smoothed round-trip time; 100 until the first measurement'),
  bitrateBps: srtFigure(
    'bit/s',
    'mbpsSendRate',
    'payload of the last second, retransmissions included',
  ),
  bytesSent: srtFigure('bytes', 'byteSentTotal', 'payload, retransmissions included'),
  packetsSent: srtFigure('packets', 'pktSentTotal', 'sent, retransmissions included'),
  packetsLost: srtFigure('packets', 'pktSndLossTotal', 'that the peer reported missing'),
  packetsRetransmitted: srtFigure('packets', 'pktRetransTotal', 'sent again'),
  packetsDropped: srtFigure(
    'packets',
    'pktSndDropTotal',
    'not sent or repaired in time: the peer or its line is too slow',
  ),
}

const Reader = titled(
  'Reader',
  {
    remote: text('address and port of the reader'),
    since: time('when it connected'),
    ...SENT,
  },
  'a reader of the transport stream over SRT',
)

export type ReaderReport = Declared<typeof Reader>

const Push = titled(
  'Push',
  {
    ...Peer.properties,
    connection: Type.Optional(
      Type.Object(SENT, { description: 'absent unless `state` is `CONNECTED`' }),
    ),
  },
  'an SRT listener that this service sends the stream to',
)

export type PushReport = Declared<typeof Push>

const Track = titled(
  'Track',
  {
    pid: integer('PID in the transport stream of the encoder'),
    kind: Type.Enum(['video', 'audio', 'data'], { description: '`video`, `audio` or `data`' }),
    codec: Type.Unsafe<MediaTrack['codec']>(
      text('`h264`, `h265`, `aac`, `mp3`, `mp2`, `ac3`, … or `unknown`'),
    ),
    codecString: Type.Optional(text('value of CODECS (RFC 6381)')),
    language: Type.Optional(text('ISO 639 code')),
    width: Type.Optional(integer('width in pixels, of video')),
    height: Type.Optional(integer('height in pixels, of video')),
    frameRate: Type.Optional(number('frames per second')),
    videoRange: Type.Optional(text('`SDR`, `HLG` or `PQ`')),
    closedCaptions: Type.Optional(
      Type.Boolean({ description: 'whether the video has contained CEA-608 or CEA-708 captions' }),
    ),
    sampleRate: Type.Optional(integer('samples per second, of audio')),
    channels: Type.Optional(integer('channels, of audio')),
    bitrateBps: Type.Optional(
      integer(
        'bit/s of its transport packets over the last 4 s; absent before that, and without an encoder',
      ),
    ),
    gopSec: Type.Optional(
      number('duration of a GOP of the video, in seconds: the longest of the last three'),
    ),
  },
  'an elementary stream of the program',
)

/**
 * An elementary stream of the program.
 *
 * @interface
 */
export type TrackReport = Declared<typeof Track>

const Service = titled(
  'ServiceLoad',
  {
    loopDelayMsP99: number('lateness of the event loop in the last 10 s, 99th percentile'),
    loopDelayMsMax: number('lateness of the event loop in the last 10 s, maximum'),
    kernelDrops: Type.Optional(
      integer(
        'datagrams for SRT that the kernel dropped since the service started; absent where the system does not tell',
      ),
    ),
    http: Type.Object(
      {
        connections: integer('open HTTP connections'),
        bufferedBytes: integer(
          'memory of replies to slow readers, without segments in the cache; its limit is `HTTP_MAX_BUFFERED_MIB`',
        ),
        refused: integer('connections refused at `HTTP_MAX_CONNECTIONS`'),
        refusedPerAddress: integer('connections refused at the share of one address'),
        displaced: integer('idle connections closed in favor of new ones'),
        expired: integer('connections closed after 75 s without a complete request'),
        slow: integer('readers disconnected below 4 KiB/s for a minute'),
        refusedStreams: integer('HTTP/2 requests refused because too many were open'),
        flooding: integer(
          'HTTP connections closed for floods of resets, frames or tiny pieces of bodies',
        ),
        overMemory: integer('readers disconnected because replies exceeded the memory limit'),
      } satisfies { readonly [Name in keyof HttpReport]: TSchema },
      {
        description:
          'HTTP connections; all but the first two count since the start, on `API_PORT` and `METRICS_PORT` too',
      },
    ),
  },
  'load of the process, the same in every record',
)

/**
 * Load of the process that serves the streams: field `service` of a record.
 *
 * @interface
 */
export type ServiceReport = Declared<typeof Service>

export type ServiceLoad = Omit<ServiceReport, 'http'>

const Edge = Type.Object({
  edge: text('its `NODE_URL`, or its host and port'),
  lagMs: integer('media that the owner listed and it lacked; 0, or one part, if it keeps up'),
})

/** Edge that has reported within 15 s. */
export type EdgeState = Declared<typeof Edge>

/** Lag of the edge that is farthest behind, in milliseconds. */
export function maxLagMs(edges: readonly EdgeState[]): number {
  return Math.max(...edges.map(({ lagMs }) => lagMs))
}

const Archive = Type.Object(
  {
    run: text('what is between a start and a stop; `clip` takes it'),
    state: Type.Enum(['RUNNING', 'BEHIND', 'COMPLETE', 'FAILED'] as const, {
      description:
        '`BEHIND`: media waits for over 30 s, or is lost; `FAILED`: the store did not take the end within 20 min',
    }),
    url: Type.Optional(text('its multivariant playlist; absent until that is stored')),
    durationSec: number('duration of what the playlists list, gaps included'),
    sizeBytes: integer('size of the segments in the store'),
    segments: integer('segments in the store, of all renditions'),
    gaps: integer('stretches in which a rendition lacks media'),
    gapSec: number('duration of these'),
    lagSec: integer('age of the oldest media that waits for the store'),
    waitingBytes: integer('memory for what waits; counts toward `ARCHIVE_MAX_MIB`'),
    error: Type.Optional(text('what the store answered last; absent if it took it')),
  },
  { description: 'the archive; absent for a stream without' },
)

export const Clip = titled('Clip', {
  url: text('multivariant playlist of the clip, over the segments of the archive'),
  from: time('start of its first segment'),
  to: time('end of its last segment'),
  durationSec: number('what is between the two'),
  gapSec: number('duration of the segments that are missing'),
})

/**
 * Where the playlist of a clip is.
 *
 * @interface
 */
export type ClipReport = Declared<typeof Clip>

/** Archive of a stream. */
export type ArchiveReport = Declared<typeof Archive>

const { playbackToken: _, ...ownOptions } = recorded(STREAM_OPTIONS)

const Key = titled(
  'StreamKey',
  {
    keyId: text('its id, for `revoke-key`; tells nothing else than what is below'),
    source: Type.Enum([...ENCODER_SOURCES], { description: '`main` or `backup`' }),
    issuedAt: Type.Optional(time('when it was issued; absent if it does not tell')),
    expiresAt: time('when it expires'),
    lastUsedAt: Type.Optional(
      time('when an encoder connected with it last; absent if none has so far'),
    ),
  },
  'a stream key that holds, in both its forms',
)

export type KeyReport = Declared<typeof Key>

/** What is counted for each reason for which media is dropped, by name. */
const DROPPED = {
  tooCostly: 'SRT packets whose media costs too much CPU',
  syncLost:
    'losses of packet synchronization (TR 101 290 1.2), with the bytes up to the next packet',
  transportError: 'transport packets marked as damaged (TR 101 290 2.1)',
  scrambled: 'transport packets that are scrambled',
  malformedPacket: 'transport packets that do not parse',
  duplicate: 'transport packets sent twice: no media is lost',
  orphan: 'transport packets of a PES packet whose start is missing',
  tableCrc: 'tables and splice information with a wrong CRC_32 (TR 101 290 2.2)',
  tableFlood: 'changes of PAT and PMT that come too often',
  encryptedSplice: 'splice information that is encrypted',
  malformedSplice: 'splice information that does not parse',
  malformedPes: 'PES packets without a valid header',
  unconfigured: 'PES packets of LATM before its first StreamMuxConfig',
  incompleteAudio: 'AAC frames that lack their start or their end',
  oversize: 'PES packets and frames that are too large, alone or for their segment',
  damaged:
    'PES packets with lost or damaged bytes: key frames, the last frame of an encoder, audio and data',
  beforeKeyFrame: 'PES packets of video before the key frame with which it begins or goes on',
  audio: 'PES packets of audio without video at their time, or that the stream began without',
  data: 'PES packets of data without video at their time',
  otherRendition: 'PES packets of a rendition behind the main one',
  cmaf: 'access units and audio frames that CMAF lacks: no sample can express them, they overlap others, they begin before the first key frame, or there is no room for them',
} as const

/** Reason for which media is dropped. */
export type DropReason = keyof typeof DROPPED

export const DROP_REASONS = Object.keys(DROPPED) as readonly DropReason[]

const Dropped = Type.Object(
  Object.fromEntries(
    Object.entries(DROPPED).map(([reason, counted]) => [reason, Type.Optional(integer(counted))]),
  ) as Record<DropReason, TOptional<TInteger>>,
  { description: 'media that was dropped, by reason; a reason is absent while it counts 0' },
)

export const StreamRecord = titled('StreamRecord', {
  streamId: text('id of the stream'),
  status: state,
  live: Type.Boolean({ description: 'an encoder feeds a playlist that can be played' }),
  startedAt: time('when the stream was started'),
  liveSince: orNull(time(''), 'since when it is live; null while it is not'),
  interruption: Type.Optional(
    Type.Object(
      {
        since: time('when the encoder was lost, or its media'),
        reason: Type.Enum([...INTERRUPTION_REASONS], {
          description: 'as in `stream.interrupted`',
        }),
      },
      { description: 'the interruption; absent unless `status` is `INTERRUPTED`' },
    ),
  ),
  stopsAt: Type.Optional(
    time('when the stream stops by itself: in `READY` and `INTERRUPTED`, if no encoder comes'),
  ),
  publisher: orNull(
    Publisher,
    'connection of the encoder that is on air or, without one, of the one that is connected, see below; null without an encoder',
  ),
  onAir: orNull(
    Type.Enum([...ENCODER_SOURCES, 'slate'], { description: '' }),
    'where its media comes from: `main`, `backup` or `slate`; null while there is none',
  ),
  sources: Type.Array(Source, { description: 'its encoders that are connected' }),
  pull: Type.Optional(Peer),
  readers: Type.Array(Reader, { description: 'its readers over SRT' }),
  pushes: Type.Array(Push, { description: 'where it is sent to, in the order of `push_urls`' }),
  tracks: Type.Array(Track, { description: 'tracks of the program' }),
  playlist: Type.Object(
    {
      listedSegments: integer('segments that can be fetched'),
      wantedSegments: integer('`HLS_PLAYLIST_SEGMENTS`, or `playlist_segments` of the stream'),
      releasedEarly: integer(
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
        srtMs: number('latency of the SRT connection'),
        partMs: number(
          'media that must be complete before players get it: PART-TARGET, or a segment without low latency',
        ),
        holdBackMs: number('how far from the end players play'),
        expectedMs: number('sum of the three, without encoder and display'),
      },
      { description: 'latency of viewers; absent until `master.m3u8` appears' },
    ),
  ),
  queuedBytes: integer(
    'received media that is in no finished segment: behind a missing packet, in a burst, in open PES packets and segments; counts toward `CACHE_MAX_MIB`',
  ),
  totals: Type.Object(
    {
      segments: integer('segments of all renditions'),
      segmentBytes: integer('size of the segments'),
      durationSec: number('duration of the main rendition'),
      dropped: Dropped,
      packetsDamaged: integer(
        'PES packets with lost or damaged bytes: of video all but key frames are published, with holes',
      ),
      publishers: integer('encoders that connected'),
      sourceChanges: integer('times that another source went on air'),
      srtBytesSent: integer(
        'payload sent over SRT, to readers and pushes, without retransmissions',
      ),
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
  playbackToken: Type.Boolean({ description: 'whether viewers need a playback token' }),
  options: Type.Object(ownOptions, {
    description: 'what start-stream gave the stream of its own; empty for a resumed stream',
  }),
  keys: Type.Optional(
    Type.Array(Key, {
      description:
        'stream keys that are neither expired nor revoked, the newest first: those issued since the start and those used, at most 50, issued or used last; absent in `streams`',
    }),
  ),
  archive: Type.Optional(Archive),
  publishPort: Type.Optional(integer('port that the stream has to itself')),
  bannedUntil: Type.Optional(time('until when `kick` bans encoders; absent without a ban')),
  node: Type.Optional(
    text('node that owns the stream, in a cluster; absent until an encoder has connected'),
  ),
  fence: Type.Optional(
    integer('number of the claim under which that node owns it: a later claim has a higher one'),
  ),
  pendingWrites: Type.Optional(integer('changes that Redis has not acknowledged; rarely over 1')),
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
  service: Type.Optional(Service),
})

/**
 * A stream, and the load of the process that serves it.
 *
 * @interface
 */
export type StreamRecord = Omit<
  Declared<typeof StreamRecord>,
  'publisher' | 'sources' | 'onAir'
> & {
  readonly publisher?: PublisherReport
  readonly onAir?: SourceName
  readonly sources: readonly SourceReport[]
}

/**
 * What a stream reports of itself, for `status`, webhooks and integrators.
 *
 * @interface
 */
export type StreamReport = Pick<
  StreamRecord,
  | 'streamId'
  | 'status'
  | 'live'
  | 'startedAt'
  | 'liveSince'
  | 'interruption'
  | 'stopsAt'
  | 'publisher'
  | 'onAir'
  | 'sources'
  | 'readers'
  | 'tracks'
  | 'playlist'
  | 'latency'
  | 'queuedBytes'
  | 'totals'
  | 'warnings'
>

/** @throws {MillraceError} `SOURCE_UNAVAILABLE` if an encoder is not connected */
export function checkSource(
  { sources }: Pick<StreamRecord, 'sources'>,
  wanted: EncoderSource,
): void {
  if (!sources.some(({ source }) => source === wanted))
    throw new MillraceError('SOURCE_UNAVAILABLE')
}

/**
 * The main playlist of a stream, and shortage of memory since the start.
 *
 * @interface
 */
export type PlaylistReport = StreamRecord['playlist']
/**
 * Latency that viewers can expect, and what it consists of.
 *
 * @interface
 */
export type LatencyReport = NonNullable<StreamRecord['latency']>
/**
 * Counters of a stream since its start.
 *
 * @interface
 */
export type StreamTotals = StreamRecord['totals']
/** A problem of the source or its connection, for the operator to fix. */
export type Warning = StreamRecord['warnings'][number]
/** Options that a stream has of its own; absent ones are those of the service. */
export type StreamOptions = Omit<OwnOptions, 'playbackToken'>

export const StreamPage = titled('StreamPage', {
  streams: Type.Array(StreamRecord, { description: 'in the order of their ids' }),
  next: orNull(Type.String(), '`after` of the next page; null on the last one'),
  service: Type.Optional(Service),
})

/**
 * A page of streams, with `next` for the page behind it.
 *
 * @interface
 */
export type StreamPage = Omit<Declared<typeof StreamPage>, 'streams'> & {
  readonly streams: readonly Omit<StreamRecord, 'service' | 'keys'>[]
}

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

/**
 * Ingest node of a cluster.
 *
 * @interface
 */
export type ClusterNode = Declared<typeof NodeList>['nodes'][number]

/** Components of the OpenAPI document, by their titles. */
export const COMPONENTS = {
  Clip,
  NodeList,
  Publisher,
  Push,
  Reader,
  Source,
  ServiceLoad: Service,
  StartedStream,
  StreamPage,
  StreamKey: Key,
  StreamRecord,
  Track,
}
