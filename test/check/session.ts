/**
 * What a check of a Millrace stream sees, without waiting: a clip is pushed through a live stream with a clock of its own,
 * and a client loads each version of each playlist with its media, then sends every probe.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import Fastify, { type InjectOptions } from 'fastify'
import type { Exchange, Role } from '../../src/check/exchange.ts'
import { parseMediaPlaylist, liveEdge } from '../../src/check/playlist/media-playlist.ts'
import { withDirectives } from '../../src/check/playlist/directives.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { playback } from '../../src/http/playback.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'

export const ORIGIN = 'https://media.example'
const BASE = `${ORIGIN}/video/studio/`
const PAYLOAD_BYTES = 1316

/** Payloads between two visits of the client: 50 ms of the clip, so that it sees each part. */
const CLIP = readFileSync(new URL('../../fixtures/two-languages.mpegts', import.meta.url))
const CLIP_SEC = 10

/** Duration of a request, in milliseconds. */
const ROUND_TRIP_MS = 2

export interface SessionOptions {
  /** Default true. */
  readonly lowLatency?: boolean
  /** Whether the encoder reconnects after the clip and publishes it again; default false. */
  readonly reconnects?: boolean
  /** Whether the stream stops at the end; default false. */
  readonly stops?: boolean
}

/** One video with English audio, and a French rendition; segments of 1 s, parts of 0.2 s. */
export async function recordSession(options: SessionOptions = {}): Promise<Exchange[]> {
  const { lowLatency = true, reconnects = false, stops = false } = options
  let nowUs = 0
  const wallMs = () => Date.UTC(2026, 0, 1) + nowUs / 1000
  const stream = new LiveStream('studio', {
    clock: { nowUs: () => nowUs, wallMs },
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    epoch: 'e',
    partSec: lowLatency ? 0.2 : undefined,
    segmentSec: 1,
    maxSegmentSec: 10,
    playlistSegments: 6,
    lingerSec: 60,
    reconnectGraceSec: 120,
  })
  const app = Fastify()
  await app.register(playback, { prefix: '/video', source: { findStream: () => stream } })
  const exchanges: Exchange[] = []
  const load = async (
    role: Role,
    url: string,
    { playlistUrl, method = 'GET', headers = {} }: Partial<Exchange> = {},
  ): Promise<string> => {
    const { pathname, search } = new URL(url)
    const sentAtMs = wallMs()
    const request: InjectOptions = { method, url: pathname + search, headers: { ...headers } }
    const { statusCode, headers: replyHeaders, rawPayload } = await app.inject(request)
    const isGzip = replyHeaders['content-encoding'] === 'gzip'
    const body = isGzip ? gunzipSync(rawPayload) : rawPayload
    exchanges.push({
      ...{ role, method, url, headers, sentAtMs },
      ...(playlistUrl !== undefined && { playlistUrl }),
      reply: {
        status: statusCode,
        headers: {
          ...Object.fromEntries(
            Object.entries(replyHeaders).map(([name, value]) => [name, String(value)]),
          ),
          date: new Date(sentAtMs).toUTCString(),
        },
        ...{ url, protocol: 'h2', body, longestPauseMs: 0 },
        headersAtMs: sentAtMs + ROUND_TRIP_MS,
        endedAtMs: sentAtMs + ROUND_TRIP_MS,
      },
    })
    return rawPayload.toString()
  }

  const seen = new Set<string>()
  const texts = new Map<string, string>()
  const segmentUrls = new Map<string, readonly string[]>()
  let multivariant = ''
  const visit = async () => {
    if (stream.files.get('playlist.m3u8') === undefined) return
    const master = stream.files.get('master.m3u8')!.chunks.join('')
    if (master !== multivariant) multivariant = await load('multivariant', `${BASE}master.m3u8`)
    for (const name of ['playlist.m3u8', 'audio-2.m3u8']) {
      const current = stream.files.get(name)?.chunks.join('')
      if (current === undefined || current === texts.get(name)) continue
      const playlistUrl = BASE + name
      const { sequence, part } = liveEdge(parseMediaPlaylist(current, playlistUrl))
      const isFirst = !texts.has(name) || !lowLatency || current.includes('ENDLIST')
      const text = await load(
        isFirst ? 'playlist' : 'blocking',
        isFirst ? playlistUrl : withDirectives(playlistUrl, { sequence, part: Math.max(0, part) }),
      )
      texts.set(name, text)
      for (const segment of parseMediaPlaylist(text, playlistUrl).segments) {
        for (const { url, gap } of segment.parts) {
          if (!gap && !seen.has(url)) await load('part', url, { playlistUrl })
          seen.add(url)
        }
        if (segment.url === undefined || segment.gap || seen.has(segment.url)) continue
        await load('segment', segment.url, { playlistUrl })
        seen.add(segment.url)
        segmentUrls.set(name, [...(segmentUrls.get(name) ?? []), segment.url])
      }
    }
  }

  const publish = async () => {
    const publication = stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
    for (let at = 0; at < CLIP.length; at += PAYLOAD_BYTES) {
      nowUs += (CLIP_SEC * 1e6 * PAYLOAD_BYTES) / CLIP.length
      publication.push(CLIP.subarray(at, at + PAYLOAD_BYTES))
      await visit()
    }
    return publication
  }

  let publication = await publish()
  if (reconnects) {
    publication.end('timeout')
    await visit()
    publication = await publish()
  }
  await probe(
    load,
    [...texts].map(([name, text]) => ({
      playlistUrl: BASE + name,
      text,
      goneUrl: segmentUrls.get(name)?.findLast((url) => !text.includes(url.replace(BASE, ''))),
    })),
    lowLatency,
  )
  if (stops) {
    stream.stop('api')
    await visit()
  }
  await app.close()
  return exchanges
}

type Load = (role: Role, url: string, rest?: Partial<Exchange>) => Promise<string>

async function probe(
  load: Load,
  playlists: readonly { playlistUrl: string; text: string; goneUrl: string | undefined }[],
  lowLatency: boolean,
): Promise<void> {
  for (const { playlistUrl, text, goneUrl } of playlists) {
    const { segments } = parseMediaPlaylist(text, playlistUrl)
    const last = segments.findLast(({ url }) => url !== undefined)!
    const media = { playlistUrl }
    await load('head', last.url!, { ...media, method: 'HEAD' })
    await load('range', last.url!, { ...media, headers: { range: 'bytes=0-187' } })
    const asked = {
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'range',
      origin: 'https://player.example',
    }
    await load('preflight', last.url!, { ...media, method: 'OPTIONS', headers: asked })
    if (goneUrl !== undefined) await load('gone', goneUrl, media)
    for (const coding of ['gzip', 'identity'] as const) {
      await load(coding, playlistUrl, { ...media, headers: { 'accept-encoding': coding } })
    }
    await load('unknown', new URL('never-listed.ts', playlistUrl).href, media)
    if (!lowLatency) continue
    await load('old-sequence', withDirectives(playlistUrl, { sequence: last.sequence }))
    await load('far-ahead', withDirectives(playlistUrl, { sequence: last.sequence + 100 }))
    await load('part-without-sequence', withDirectives(playlistUrl, { part: 0 }))
  }
}

/** The exchange with another body, as text. */
export function withBody(exchange: Exchange, edit: (body: string) => string): Exchange {
  const body = Buffer.from(edit(exchange.reply!.body.toString()))
  return { ...exchange, reply: { ...exchange.reply!, body } }
}
