/**
 * What the HTTP bench requests.
 *
 * @module
 */

/** Requests for one file at full speed, or at a fixed rate. */
export interface FileScenario {
  readonly name: string
  readonly title: string
  readonly file: FileName
  readonly protocol: Protocol
  /** Default: the file as it is. */
  readonly variant?: Variant
  /** Requests a second over all connections, by autocannon; undefined: as many as possible. */
  readonly rate?: number
}

/** `missing` is a segment that does not exist. */
export type FileName = 'playlist' | 'segment' | 'small-segment' | 'part' | 'missing'

export type Protocol = 'http' | 'https' | 'h2'

export type Variant = 'gzip' | 'not-modified'

const LATENCY = 'autocannon at a fixed rate'

export const FILE_SCENARIOS: readonly FileScenario[] = [
  { name: 'playlist', title: 'playlist', file: 'playlist', protocol: 'http' },
  {
    ...{ name: 'playlist-gzip', title: 'playlist, gzip' },
    ...{ file: 'playlist', protocol: 'http', variant: 'gzip' },
  },
  { name: 'segment', title: 'segment of 1.25 MB', file: 'segment', protocol: 'http' },
  {
    ...{ name: 'small-segment', title: 'segment of 0.5 MB' },
    ...{ file: 'small-segment', protocol: 'http' },
  },
  { name: 'part', title: 'part of 100 KB', file: 'part', protocol: 'http' },
  {
    ...{ name: 'not-modified', title: '304: segment with If-None-Match' },
    ...{ file: 'segment', protocol: 'http', variant: 'not-modified' },
  },
  { name: 'not-found', title: '404: unknown segment', file: 'missing', protocol: 'http' },
  {
    ...{ name: 'playlist-latency', title: `playlist, ${LATENCY}` },
    ...{ file: 'playlist', protocol: 'http', rate: 2000 },
  },
  {
    ...{ name: 'part-latency', title: `part of 100 KB, ${LATENCY}` },
    ...{ file: 'part', protocol: 'http', rate: 200 },
  },
  { name: 'playlist-tls', title: 'playlist, TLS', file: 'playlist', protocol: 'https' },
  { name: 'segment-tls', title: 'segment of 1.25 MB, TLS', file: 'segment', protocol: 'https' },
  { name: 'playlist-h2', title: 'playlist, HTTP/2', file: 'playlist', protocol: 'h2' },
  { name: 'segment-h2', title: 'segment of 1.25 MB, HTTP/2', file: 'segment', protocol: 'h2' },
]

/** Viewers of one live stream. */
export interface LiveScenario {
  readonly name: string
  readonly title: string
  /** Viewers with one blocking playlist request each, at any time. */
  readonly lowLatencyViewers: number
  /** Whether those fetch every part, too. */
  readonly fetchesParts: boolean
  /** Viewers that reload the playlist each second and fetch every segment. */
  readonly classicViewers: number
}

export const LIVE_SCENARIOS: readonly LiveScenario[] = [
  {
    ...{ name: 'blocking-reload', title: 'blocking reload' },
    ...{ lowLatencyViewers: 500, fetchesParts: false, classicViewers: 0 },
  },
  {
    ...{ name: 'viewers', title: 'live viewers' },
    ...{ lowLatencyViewers: 100, fetchesParts: true, classicViewers: 100 },
  },
]

export const SCENARIO_NAMES: readonly string[] = [...FILE_SCENARIOS, ...LIVE_SCENARIOS].map(
  ({ name }) => name,
)
