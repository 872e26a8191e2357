/**
 * Every setting, declared once: type, default, bounds and meaning.
 *
 * To add one:
 * - its row, here; its path gives the names of variable and flag (`setting-names.ts`)
 * - its reader, which has it from the file of `service/` that creates it, and at an edge from `cluster/edge/edge-server.ts`;
 *   for the options of all streams `service/stream-defaults.ts`
 * - its group and advice in `test/config/settings-page.ts`, and `npm run docs`
 * - if a rule spans several settings: `complete-settings.ts`; for a secret also `equalSecrets` there, and
 *   `service/settings-in-use.ts`
 * - if processes share the limit: `workerConfig` in `cluster/workers/worker-process.ts`, `ingestConfig` in `supervisor.ts`
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import {
  DVR_SEC,
  LATENCY_MS,
  PART_MS,
  PLAYLIST_SEGMENTS,
  SEGMENT_SEC,
} from '../api/stream-options.ts'
import { quarterMib } from './machine-memory.ts'
import {
  addressBlocks,
  addresses,
  adminPassword,
  allowList,
  awsCredential,
  bearerToken,
  clusterSecret,
  formats,
  frameAncestors,
  httpUrl,
  optionalSecret,
  passphrase,
  portRange,
  port,
  program,
  redisUrl,
  redisUrls,
  secret,
  webhookSecret,
  webhookUrls,
} from './setting-types.ts'

/** Smallest values of limits that processes share. */
export const MIN_ARCHIVE_MIB = 16
export const MIN_CACHE_MIB = 16
export const MIN_BUFFERED_MIB = 16
export const MIN_CONNECTIONS = 16
const MAX_CACHE_MIB = 1_048_576

/** Complete settings of the service, from a caller of the library or from environment and flags. */
export const Config = Type.Object({
  hmacSecret: secret(
    'signs API requests, and webhooks unless `WEBHOOK_SECRET` is set; `millrace keygen` makes one',
  ),
  jwtSecret: secret('signs stream keys; `millrace keygen` makes one'),
  http: Type.Object({
    host: Type.String({ default: '0.0.0.0', description: 'address the HTTP server listens on' }),
    port: port(8080, 'TCP port of the API and of playback; 0: any free port'),
    maxConnections: Type.Integer({
      minimum: MIN_CONNECTIONS,
      maximum: 1_000_000,
      default: 10_000,
      description:
        'open TCP connections, at most a quarter of them from one address (loopback: all); further clients get 503',
    }),
    maxBufferedMib: Type.Integer({
      minimum: MIN_BUFFERED_MIB,
      maximum: 1_048_576,
      default: 256,
      description:
        'memory for replies to slow readers, beside the cache; above it the slowest readers are disconnected',
    }),
    workers: Type.Integer({
      minimum: 0,
      maximum: 64,
      default: 0,
      description:
        'processes for HTTP besides the one for SRT, which share `HTTP_PORT` and the limits; 0: one process for all',
    }),
  }),
  tls: Type.Object({
    cert: Type.String({
      default: '',
      allowed: 'path of a PEM file',
      description:
        'certificate chain: all HTTP ports speak HTTPS, with HTTP/2 and HTTP/1.1; read again when it changes; empty: plain HTTP',
    }),
    key: Type.String({
      default: '',
      allowed: 'path of a PEM file',
      description: 'private key of `TLS_CERT`, without a passphrase',
    }),
  }),
  srt: Type.Object({
    host: addresses(
      '0.0.0.0',
      'addresses the SRT listener binds; `0.0.0.0`: all IPv4 addresses, `::`: all addresses',
    ),
    port: port(10_080, 'UDP port of the SRT listener; 0: any free port'),
    reusePort: Type.Boolean({
      default: false,
      description:
        'whether other nodes of a cluster on this machine have `SRT_PORT`, too: the kernel gives each encoder to one of them; from Node.js 22.12 on',
    }),
    latencyMs: Type.Integer({
      ...LATENCY_MS,
      default: 120,
      description:
        'minimum receive latency, the time to repair a loss; an encoder may ask for more',
    }),
    streamPorts: portRange(
      'UDP ports for encoders that send no stream id; start-stream gives one to a stream with `publish_port`; in a cluster the same on all nodes, at most 256; empty: none',
    ),
    passphrase: passphrase(
      'passphrase of encoders and readers, which must encrypt with it; empty: they must not encrypt',
    ),
    maxReaders: Type.Integer({
      minimum: 0,
      maximum: 10_000,
      default: 100,
      description:
        'readers of transport streams over SRT, at most half of them of one stream; further ones are refused with SRT reject code 1003; 0: none',
    }),
  }),
  srtla: Type.Object({
    port: port(
      0,
      'UDP port of encoders that bond several lines by SRTLA (BELABOX, Moblin, IRL Pro), 5000 for instance; 0: none',
    ),
  }),
  public: Type.Object({
    host: Type.String({
      default: '',
      description:
        'host in SRT URLs; empty: the first of `SRT_HOST`, or the first address of this machine where that is a wildcard',
    }),
    url: Type.String({
      default: '',
      pattern: '^(https?://.+)?$',
      description:
        'base of playlist URLs, an http or https URL; empty: `http://PUBLIC_HOST:HTTP_PORT`, https with `TLS_CERT`',
    }),
  }),
  ts: Type.Object({
    program: program(
      'first',
      'program of a multi-program transport stream to publish: the first with video, a program number, or all as one; `program=` in a stream key overrides it',
    ),
  }),
  hls: Type.Object({
    segmentSec: Type.Number({
      ...SEGMENT_SEC,
      default: 2,
      description: 'minimum segment duration; a segment ends at the next key frame',
    }),
    maxSegmentSec: Type.Integer({
      minimum: 1,
      maximum: 60,
      default: 10,
      description: 'maximum segment duration; a longer GOP is cut between key frames',
    }),
    playlistSegments: Type.Integer({
      ...PLAYLIST_SEGMENTS,
      default: 6,
      description: 'minimum number of segments in a playlist',
    }),
    formats: formats(
      'ts,cmaf',
      'formats to make: `cmaf` for players, `ts` for everything else; what is left out takes neither CPU nor memory',
    ),
    lowLatency: Type.Boolean({
      default: true,
      description:
        'low-latency HLS, in CMAF: players fetch parts of a segment before the segment is complete; other players use the same URL',
    }),
    partMs: Type.Integer({
      ...PART_MS,
      default: 200,
      description: 'desired duration of a part; the latency of players is about three parts',
    }),
    tracks: Type.Enum(['compatible', 'all'], {
      default: 'compatible',
      description:
        'tracks to publish: `all`, or those that players expect in transport stream (H.264, H.265, AAC, MP3, MP2, AC-3, ID3)',
    }),
    captions: Type.Enum(['auto', 'always', 'never'], {
      default: 'auto',
      description:
        'CEA-608 and CEA-708 captions in `master.m3u8`: listed once seen (`auto`), from the start, or denied. Players read it once: set `always` or `never` where you know',
    }),
    dvrSec: Type.Integer({
      ...DVR_SEC,
      default: 0,
      description:
        'how far viewers may go back at `dvr.m3u8`, in archived streams; 0: only as far as `HLS_PLAYLIST_SEGMENTS` reaches',
    }),
    dvrCacheMib: Type.Integer({
      minimum: MIN_CACHE_MIB,
      maximum: MAX_CACHE_MIB,
      default: 128,
      description:
        'memory for segments of all streams that are read back from the archive, each of which may take an eighth; beside the cache',
    }),
    lingerSec: Type.Integer({
      minimum: 0,
      maximum: 86_400,
      default: 60,
      description: 'how long the files of a stopped stream stay available',
    }),
  }),
  playbackSecret: optionalSecret(
    'signs playback tokens: viewers need `/t/{token}/video/…`, except of streams started with `playback_token` false; empty: playback is public',
  ),
  watchFrameAncestors: frameAncestors(
    'sites that may show `/watch` in a frame, as `frame-ancestors` of a content security policy; empty: all',
  ),
  apiMaxAgeSec: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    default: 0,
    description:
      'maximum distance of `issued_at` from now; API requests beyond it, or without `issued_at`, are refused; 0: no check',
  }),
  apiHost: Type.String({
    default: '',
    description: 'address of `API_PORT` and `METRICS_PORT`; empty: `HTTP_HOST`',
  }),
  apiPort: port(0, 'TCP port of the API, and of metrics with `METRICS_TOKEN`; 0: `HTTP_PORT`'),
  apiFrom: addressBlocks('clients that may use the API and read metrics; empty: all'),
  apiRate: Type.Number({
    minimum: 0,
    maximum: 10_000,
    default: 0,
    description:
      'API requests per second of one address, or of an IPv6 /64; further ones get 429; `/metrics` is exempt; 0: no limit',
  }),
  admin: Type.Object({
    password: adminPassword(
      'password of the dashboard `/admin`, where the API is; at least 16 characters are advised; empty: no dashboard',
    ),
  }),
  edgeOf: Type.String({
    default: '',
    // Without credentials: the log has it, and no request sends them.
    pattern: '^(unix:/.+|https?://[^@]+)?$',
    allowed: 'unix:/path, or an http or https URL without credentials',
    description:
      'origin of `millrace edge`: another Millrace, whose streams it serves from memory of its own',
  }),
  role: Type.Enum(['all', 'ingest', 'edge'], {
    default: 'all',
    description:
      'part of this node in a cluster: `ingest` takes encoders and serves edges, `edge` serves viewers, `all` does both',
  }),
  redisUrl: redisUrl(
    'registry of a cluster: its nodes have the same, and the same `JWT_SECRET`; empty: no cluster',
  ),
  clusterBackup: Type.Boolean({
    default: false,
    description:
      'whether ingest nodes copy closed segments to Redis, where the node that continues a stream finds them',
  }),
  redisBackupUrls: redisUrls(
    'servers for `CLUSTER_BACKUP`, each with a share of the streams: all nodes have the same in the same order; empty: `REDIS_URL`',
  ),
  nodeUrl: httpUrl(
    'URL at which the other nodes of a cluster reach this one; empty: `http://PUBLIC_HOST:HTTP_PORT`',
  ),
  clusterSecret: clusterSecret(
    'signs calls between nodes, among them those of `EDGE_OF`: all nodes have the same; empty: calls are not signed',
  ),
  trustProxy: addressBlocks(
    'proxies whose `X-Forwarded-For` names the client, for `API_FROM`, `API_RATE`, the dashboard, playback tokens with an address and the audit log; empty: none',
  ),
  pull: Type.Object({
    allow: allowList(
      'the only hosts that `pull_url` and `push_urls` may name; empty: all. Link-local and metadata addresses are never allowed',
    ),
  }),
  publishFrom: addressBlocks(
    'encoders that may publish; further ones are refused with SRT reject code 2403; empty: all',
  ),
  resumeStreams: Type.Boolean({
    default: true,
    description:
      'whether a stream key issued before the process started resumes its stream without an API call',
  }),
  defaultWebhookUrls: webhookUrls(
    'webhook URLs of resumed streams, of streams started without `webhook_urls`, and of `service.started`',
  ),
  maxStreams: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    default: 1000,
    description: 'streams that are not stopped; further starts get 503',
  }),
  webhook: Type.Object({
    secret: webhookSecret(
      'signs webhooks; empty: the bytes of `HMAC_SECRET`. `millrace webhook-secret` prints the key for receivers',
    ),
    allow: allowList(
      'the only receivers of webhooks; empty: all. Link-local and metadata addresses are never allowed',
    ),
  }),
  reconnectGraceSec: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    default: 120,
    description: 'how long a stream waits for a lost encoder before it stops',
  }),
  // A process that is late by less is not noticed, see `stream/sources.ts`.
  failoverMs: Type.Integer({
    minimum: 400,
    maximum: 10_000,
    default: 500,
    description: 'how long the main encoder sends nothing until the backup encoder is on air',
  }),
  failbackSec: Type.Integer({
    minimum: 0,
    maximum: 3600,
    default: 10,
    description: 'how long the main encoder sends clean media again until it is on air',
  }),
  slateDir: Type.String({
    default: '',
    allowed: 'path of a folder',
    description: 'folder of the files that start-stream takes as `slate`; empty: no slates',
  }),
  slateAfterSec: Type.Integer({
    minimum: 0,
    maximum: 600,
    default: 2,
    description: 'how long all encoders of a stream are gone until its slate is on air',
  }),
  maxPublishers: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    default: 1000,
    description: 'connected encoders; further encoders are refused with SRT reject code 1003',
  }),
  ingest: Type.Object({
    maxMbps: Type.Number({
      minimum: 0,
      maximum: 10_000,
      default: 100,
      description:
        'maximum payload bitrate of a publisher in Mbit/s, averaged over 5 s; a publisher above it is disconnected; 0: no limit',
    }),
    workers: Type.Integer({
      minimum: 1,
      maximum: 64,
      default: 1,
      description:
        'processes that receive SRT at `SRT_PORT` and share the limits, beside at least one of `HTTP_WORKERS`; above 1 from Node.js 22.12 on, and without `REDIS_URL`',
    }),
  }),
  cache: Type.Object({
    maxMib: Type.Integer({
      minimum: MIN_CACHE_MIB,
      maximum: MAX_CACHE_MIB,
      preset: 'a quarter of memory',
      presetFor: (memoryBytes: number) => quarterMib(memoryBytes, MIN_CACHE_MIB, MAX_CACHE_MIB),
      description:
        'memory for segments and queues of all streams; under pressure playlists get shorter, then segments become gaps',
    }),
  }),
  archive: Type.Object({
    mode: Type.Enum(['auto', 'all', 'request', 'off'], {
      env: 'ARCHIVE',
      default: 'auto',
      description:
        'streams to keep at `ARCHIVE_URL`: all, only those started with `archive` true (`request`), or none; `auto`: all where `ARCHIVE_URL` is set',
    }),
    url: Type.String({
      default: '',
      // No `.` and `..` as folders, which URLs do not keep.
      pattern: '^(s3://[A-Za-z0-9][A-Za-z0-9._-]{2,62}(/(?!\\.{1,2}(/|$))[^/]+)*/?)?$',
      allowed: '`s3://bucket` or `s3://bucket/prefix`',
      description: 'bucket of the archive, and the folder in it; empty: no archive',
    }),
    endpoint: httpUrl('URL of the S3-compatible store; empty: AWS in `ARCHIVE_REGION`'),
    region: Type.String({
      default: 'us-east-1',
      pattern: '^[A-Za-z0-9-]{1,64}$',
      allowed: 'letters, digits and dashes',
      description: 'region of the bucket, which requests are signed for',
    }),
    accessKeyId: awsCredential(
      'AWS_ACCESS_KEY_ID',
      'id of the key that signs requests to the archive',
    ),
    secretAccessKey: awsCredential(
      'AWS_SECRET_ACCESS_KEY',
      'key that signs requests to the archive',
    ),
    sessionToken: awsCredential(
      'AWS_SESSION_TOKEN',
      'token that goes with temporary credentials of the archive; empty: they are permanent',
    ),
    maxMib: Type.Integer({
      minimum: MIN_ARCHIVE_MIB,
      maximum: MAX_CACHE_MIB,
      default: 256,
      description:
        'memory for segments of all streams that wait for the archive; further ones become gaps in it',
    }),
    publicUrl: httpUrl(
      'URL at which players reach what is at `ARCHIVE_URL`; empty: through this service',
    ),
  }),
  metrics: Type.Object({
    port: port(
      0,
      'TCP port of `/metrics` alone, for Prometheus; 0: the port of the API, where it needs `METRICS_TOKEN`',
    ),
    token: bearerToken(
      'bearer token that `/metrics` requires; without it and `METRICS_PORT` there are no metrics',
    ),
    perStream: Type.Enum(['auto', 'always', 'never'], {
      default: 'auto',
      description:
        'whether each stream has metrics of its own; `auto`: up to 500 streams, sums above that',
    }),
  }),
  logLevel: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    file: true,
    description: 'minimum severity of log lines',
  }),
  logFormat: Type.Enum(['auto', 'json', 'pretty'], {
    default: 'auto',
    description:
      'lines of JSON, or of text for a reader (`pretty`); `auto`: text where standard output is a terminal',
  }),
})

export type Config = Static<typeof Config>

/** `Config` with every setting optional except `hmacSecret` and `jwtSecret`. */
export type GivenSettings = {
  readonly [Key in keyof Config as Key extends RequiredKey ? Key : never]: string
} & {
  readonly [
    Key in keyof Config as Key extends RequiredKey ? never : Key
  ]?: Config[Key] extends object ? Partial<Config[Key]> : Config[Key]
}

type RequiredKey = 'hmacSecret' | 'jwtSecret'
