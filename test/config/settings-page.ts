/**
 * The tables of docs/settings.md, and of the settings that README.md lists: all of a setting is from the schema but its group
 * and when to change it.
 *
 * @module
 */
import { allowedValues, SETTINGS, type Setting } from '../../src/config/setting-names.ts'

/** When to change each setting, by group in the order of the page. */
export const GUIDE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Required: {
    HMAC_SECRET: 'a client that knows it leaves, or it leaked: set `new,old`, then `new`',
    JWT_SECRET: 'a stream key leaked and the process restarts: a new value ends all keys',
  },
  'Names and addresses': {
    PUBLIC_HOST: 'encoders use a name, or reach the machine through NAT or into a container',
    PUBLIC_URL: 'a proxy or a CDN is in front, or viewers use a name other than `PUBLIC_HOST`',
    HTTP_HOST: 'a proxy on the same machine is in front: `127.0.0.1`',
    HTTP_PORT: 'viewers are to use 443, or another program has 8080',
    TLS_CERT: 'viewers reach Millrace without a TLS proxy',
    TLS_KEY: '`TLS_CERT` is set',
    SRT_HOST: 'encoders are on IPv6 (`::`), or use one of several networks',
    SRT_PORT: 'an encoder or a firewall asks for another port',
    TRUST_PROXY: 'a proxy or load balancer is in front: its address',
  },
  Encoders: {
    SRT_REUSE_PORT:
      'one core is too little for all encoders: [several nodes](cluster.md#all-cores-of-a-machine)',
    SRT_LATENCY_MS: 'the round-trip time is above 30 ms: set 4 times that, more on lossy lines',
    SRT_PASSPHRASE: 'media must be encrypted, and all encoders may share a passphrase',
    SRT_MAX_READERS: 'more players or decoders read over SRT, or none should',
    SRT_STREAM_PORTS: 'an encoder has no field for a stream id',
    SRTLA_PORT: 'encoders in the field [bond mobile lines](srtla.md)',
    PUBLISH_FROM: 'all encoders have known addresses',
    PULL_ALLOW: 'callers of the API are not to reach your private network by `pull_url`',
    TS_PROGRAM: 'the source has several programs, and the first is the wrong one',
    RECONNECT_GRACE_SEC: 'encoders stay away for longer, or a stream is to end sooner',
    RESUME_STREAMS: 'only the API may bring a stream back after a restart',
    MAX_STREAMS: 'more streams are started, whether they have encoders or not',
    MAX_PUBLISHERS: 'more encoders publish, or fewer should',
    INGEST_WORKERS:
      'one core is too little for all encoders: [several processes](production.md#several-processes-for-srt)',
    INGEST_MAX_MBPS: 'a contribution stream is above 100 Mbit/s, or none should be above a few',
  },
  'Backup encoder and slate': {
    FAILOVER_MS: 'a line pauses for longer without a fault: the hole in the video grows by as much',
    FAILBACK_SEC: 'the main encoder flaps: longer, so that there are fewer switches',
    SLATE_DIR: 'viewers are to see a slate while there is no encoder',
    SLATE_AFTER_SEC: 'encoders often return within seconds, or a still picture is worse: 0',
  },
  'HLS and CMAF': {
    HLS_PLAYLIST_SEGMENTS:
      'viewers are to seek back further; see what it [costs](production.md#memory)',
    HLS_SEGMENT_SEC: 'the keyframe interval is not 1 or 2 s',
    HLS_MAX_SEGMENT_SEC: 'key frames are further apart, and cannot be made closer',
    HLS_FORMATS: 'all viewers use one format: half the memory',
    HLS_TRACKS: 'receivers decode more than browsers do',
    HLS_CAPTIONS: 'you know whether the encoder sends captions',
    HLS_LINGER_SEC: 'the end of a stream is to stay for late viewers, or recorders need longer',
  },
  'Low latency': {
    HLS_LOW_LATENCY: 'a CDN cannot hold requests, or stability counts more than delay',
    HLS_PART_MS: 'viewers have poor lines, or there are too many requests: 333 or 500',
  },
  Viewers: {
    PLAYBACK_SECRET: 'streams are not public',
    WATCH_FRAME_ANCESTORS: 'only your sites are to [embed](players.md#watch) the player page',
  },
  Archive: {
    ARCHIVE_URL: 'streams are to be kept',
    AWS_ACCESS_KEY_ID: '`ARCHIVE_URL` is set',
    AWS_SECRET_ACCESS_KEY: '`ARCHIVE_URL` is set',
    AWS_SESSION_TOKEN: 'the credentials are temporary',
    ARCHIVE_ENDPOINT: 'the store is R2, MinIO, Ceph or another one than AWS',
    ARCHIVE_REGION: 'the bucket is in another one; most stores other than AWS take any',
    ARCHIVE: 'not all streams are to be kept: `request`',
    ARCHIVE_MAX_MIB:
      'the store may be away for longer: 20 streams of 5 Mbit/s take 750 MB a minute',
    ARCHIVE_PUBLIC_URL: 'players are to get the archive from the bucket or a CDN',
    HLS_DVR_SEC: 'viewers are to go back by hours: 14400',
    HLS_DVR_CACHE_MIB: 'many viewers are at many places, or segments have more than 16 MiB',
  },
  'Memory and load': {
    CACHE_MAX_MIB: '`/health/ready` says `memory-short`, or other programs need the memory',
    HTTP_MAX_CONNECTIONS: 'more viewers come, or all of them through one proxy',
    HTTP_MAX_BUFFERED_MIB: '`http.over_memory` in `status` rises',
    HTTP_WORKERS: 'three cores or more, and viewers take too much of the core that receives SRT',
  },
  'API and dashboard': {
    API_PORT: 'the HTTP port is public',
    API_HOST: '`API_PORT` or `METRICS_PORT` is set: the address of a private network',
    API_FROM: 'clients of the API have known addresses',
    API_RATE: 'a client may run wild',
    API_MAX_AGE_SEC: 'requests could be recorded and sent again: 60',
    ADMIN_PASSWORD: 'operators want the dashboard',
  },
  Webhooks: {
    DEFAULT_WEBHOOK_URLS: 'your backend is to hear of all streams, resumed ones included',
    WEBHOOK_SECRET: 'receivers are not yours: `HMAC_SECRET` would let them call the API',
    WEBHOOK_ALLOW: 'callers of the API are not to reach your private network by webhook URLs',
  },
  'Metrics and logs': {
    METRICS_PORT: 'Prometheus is in a private network',
    METRICS_TOKEN: 'Prometheus comes over the port of the API',
    METRICS_PER_STREAM: 'Prometheus can, or cannot, take 50 series a stream',
    LOG_LEVEL: '`debug` while you look for a fault',
    LOG_FORMAT: 'a terminal is to show JSON, or a file is for readers',
  },
  'Edges and clusters': {
    EDGE_OF: 'one machine cannot feed all viewers',
    REDIS_URL: 'streams are to outlive a machine',
    CLUSTER_SECRET: '`REDIS_URL` is set, or edges pass on the API',
    NODE_URL: '`PUBLIC_HOST` is a name of several nodes',
    ROLE: 'encoders and viewers are to have machines of their own',
    CLUSTER_BACKUP: 'a new owner is to serve the media of the old one',
    REDIS_BACKUP_URLS: '`CLUSTER_BACKUP` is set for more than a few streams',
  },
}

/** Settings that README.md lists. */
const ESSENTIAL = [
  ...['HMAC_SECRET', 'JWT_SECRET', 'PUBLIC_HOST', 'TLS_CERT', 'HTTP_PORT', 'SRT_PORT'],
  ...['SRT_LATENCY_MS', 'HLS_PLAYLIST_SEGMENTS', 'CACHE_MAX_MIB', 'ADMIN_PASSWORD'],
]

const COLUMNS = ['setting', 'default', 'allowed values', 'meaning', 'change it when', 'option']

/** Generated part of docs/settings.md. */
export function settingsByGroup(): string {
  return Object.entries(GUIDE)
    .map(([group, advice]) => {
      const rows = Object.entries(advice).map(([env, when]) => {
        const setting = settingOf(env)
        const { description } = setting.schema
        const option = `\`${setting.path.join('.')}\``
        return [`\`${env}\``, preset(setting), allowedValues(setting), description, when, option]
      })
      return `## ${group}\n\n${markdown(COLUMNS, rows)}`
    })
    .join('\n')
}

/** Generated part of README.md. */
export function essentialSettings(): string {
  return markdown(
    ['setting', 'default', 'meaning'],
    ESSENTIAL.map((env) => {
      const setting = settingOf(env)
      return [`\`${env}\``, preset(setting), setting.schema.description]
    }),
  )
}

function settingOf(name: string): Setting {
  const setting = SETTINGS.find(({ env }) => env === name)
  if (setting === undefined) throw new Error(`no setting is named ${name}`)
  return setting
}

function preset({ schema }: Setting): string {
  const text = schema.preset ?? String(schema.default ?? '(required)')
  return text === '' ? '(none)' : text
}

function markdown(
  head: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')
}
