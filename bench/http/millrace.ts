/**
 * The built service with two streams whose publishers have gone: their playlists and segments stay as they are, so
 * that every server of the bench sends the same bytes.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { segmentUris } from '../../test/support/viewer.ts'
import { startSenders, type Senders } from '../ingest/senders.ts'
import { startService } from '../support/service.ts'
import type { Contender, TlsFiles } from './contender.ts'
import { exchange, fetchBytes, fetchInsecurely } from './exchange.ts'

/** Number of segments in a full playlist. */
const SEGMENTS = 6
/** Time in which a publisher that ended has left. */
const LEAVE_MS = 1000

const PART_PLAYLIST = 'cmaf-video-1'

/** Rates for segments of 1.25 MB and 0.5 MB (2 s each); the parts of the latter have about 100 KB. */
const RATES = { segment: 5e6, 'small-segment': 2e6 } as const
const PART_BYTES = 100_000

export interface Millrace extends Contender {
  /** Publishes a stream of 5 Mbit/s until `stop`. */
  publish(streamId: string): Promise<LiveStream>
}

export interface LiveStream {
  readonly playlistUrl: string
  readonly lowLatencyUrl: string
  /** Rejects when the publisher ends. */
  readonly failure: Promise<never>
  stop(): Promise<void>
}

export interface MillraceOptions {
  /** 0: all in one process. */
  readonly workers: number
  readonly tls?: TlsFiles | undefined
  /** Environment variables besides. */
  readonly env?: Readonly<Record<string, string>>
}

export async function startMillrace({ workers, tls, env }: MillraceOptions): Promise<Millrace> {
  const service = await startService({
    workers,
    env: {
      ...env,
      // The bench needs its streams after their publishers have gone.
      RECONNECT_GRACE_SEC: '3600',
      ...(tls !== undefined && { TLS_CERT: tls.cert, TLS_KEY: tls.key }),
    },
    ...(tls !== undefined && { fetch: fetchInsecurely }),
  })
  const origin = service.httpUrl
  const playlistOf = (id: string, name = 'playlist') => `${origin}/video/${id}/${name}.m3u8`
  const publish = async (id: string, bitsPerSecond: number) => {
    return startSenders([await service.start(id)], {
      ...{ sender: 'millrace', senders: 1, spreadMs: 0, seconds: 3600, bitsPerSecond },
    })
  }
  try {
    await until('the HTTP port answers', () => exchange(`${origin}/health`).catch(() => undefined))
    await fill(
      await Promise.all(Object.entries(RATES).map((each) => publish(...each))),
      Object.keys(RATES).map((id) => playlistOf(id)),
    )
    const [playlist, segment, smallSegment, part] = await Promise.all([
      fetchBytes(playlistOf('segment')),
      nearest(playlistOf('segment'), segmentUris, (RATES.segment * 2) / 8),
      nearest(playlistOf('small-segment'), segmentUris, (RATES['small-segment'] * 2) / 8),
      nearest(playlistOf('small-segment', PART_PLAYLIST), partUris, PART_BYTES),
    ])
    return {
      name: workers === 0 ? 'millrace' : `millrace-${workers}`,
      origin,
      pid: service.pid,
      paths: {
        playlist: '/video/segment/playlist.m3u8',
        ...{ segment, 'small-segment': smallSegment, part },
        missing: missingLike(playlist.toString()),
      },
      publish: async (id) => {
        const sender = await publish(id, RATES.segment)
        await Promise.race([steady(playlistOf(id)), sender.failure])
        return {
          playlistUrl: playlistOf(id),
          lowLatencyUrl: playlistOf(id, PART_PLAYLIST),
          failure: sender.failure,
          stop: () => sender.stop(),
        }
      },
      stop: () => service.stop(),
    }
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** Publishes until the playlists are full. */
async function fill(senders: readonly Senders[], playlistUrls: readonly string[]): Promise<void> {
  try {
    await Promise.race([
      Promise.all(playlistUrls.map(steady)),
      ...senders.map(({ failure }) => failure),
    ])
    await Promise.all(senders.map((sender) => sender.finish()))
  } finally {
    await Promise.all(senders.map((sender) => sender.stop()))
  }
  await sleep(LEAVE_MS)
}

/** Waits until the playlist is full. */
async function steady(playlistUrl: string): Promise<void> {
  await until(
    'a playlist of full length',
    async () => {
      const { status, body } = await exchange(playlistUrl)
      return status === 200 && segmentUris(body.toString()).length >= SEGMENTS
    },
    { timeoutMs: 60_000, everyMs: 200 },
  )
}

/** @returns path of the listed file whose size is the nearest */
async function nearest(
  playlistUrl: string,
  listUris: (playlist: string) => readonly string[],
  sizeBytes: number,
): Promise<string> {
  const playlist = (await fetchBytes(playlistUrl)).toString()
  const files = await Promise.all(
    listUris(playlist).map(async (uri) => {
      const { href, pathname } = new URL(uri, playlistUrl)
      return { pathname, offBytes: Math.abs((await fetchBytes(href)).length - sizeBytes) }
    }),
  )
  return files.reduce((a, b) => (b.offBytes < a.offBytes ? b : a)).pathname
}

function partUris(playlist: string): string[] {
  return [...playlist.matchAll(/^#EXT-X-PART:.*URI="([^"]+)"/gm)].map(([, uri]) => uri!)
}

/** @returns path of a segment that left the playlist long ago */
function missingLike(playlist: string): string {
  return `/video/segment/${segmentUris(playlist)[0]!.replace(/-\d+\.ts$/, '-1.ts')}`
}
