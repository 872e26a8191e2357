/**
 * What a check of a Millrace stream sees, without waiting: a clip is pushed through a live stream with a clock of its own,
 * and a client loads each version of each playlist with its media, then sends every probe.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import Fastify, { type InjectOptions } from 'fastify'
import type { Exchange, RequestRole } from '../../src/check/exchange.ts'
import { withDirectives } from '../../src/check/playlist/directives.ts'
import { liveEdge, parseMediaPlaylist } from '../../src/check/playlist/media-playlist.ts'
import { parseMultivariantPlaylist } from '../../src/check/playlist/multivariant-playlist.ts'
import { MULTIVARIANT_URI, TS_MULTIVARIANT_URI, type Format } from '../../src/hls/file-names.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { playback } from '../../src/playback/fastify-plugin.ts'
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
  /** Format that the client plays, of the two that the stream has; default CMAF. */
  readonly format?: Format
  /** Whether the stream has parts, which the client loads in CMAF; default true. */
  readonly lowLatency?: boolean
  /** Whether the encoder reconnects after the clip and publishes it again; default false. */
  readonly reconnects?: boolean
  /** Whether the stream stops at the end; default false. */
  readonly stops?: boolean
}

/** One video with English audio, and a French rendition; segments of 1 s, parts of 0.2 s. */
export async function recordSession(options: SessionOptions = {}): Promise<Exchange[]> {
  const { format = 'cmaf', lowLatency = true, reconnects = false, stops = false } = options
  let nowUs = 0
  const wallMs = () => Date.UTC(2026, 0, 1) + nowUs / 1000
  const stream = new LiveStream('studio', {
    clock: { nowUs: () => nowUs, wallMs },
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    epoch: 'e',
    formats: ['ts', 'cmaf'],
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
    role: RequestRole,
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
  const loadOnce = async (role: RequestRole, url: string, playlistUrl: string) => {
    if (seen.has(url)) return
    seen.add(url)
    await load(role, url, { playlistUrl })
  }
  /** By playlist URL. */
  const texts = new Map<string, string>()
  const multivariantUri = format === 'cmaf' ? MULTIVARIANT_URI : TS_MULTIVARIANT_URI
  const textOf = (uri: string) => stream.files.get(uri)?.chunks.join('')
  let multivariant = ''
  const visit = async () => {
    const text = textOf(multivariantUri)
    if (text === undefined) return
    if (text !== multivariant) multivariant = await load('multivariant', BASE + multivariantUri)
    const { variants, renditions } = parseMultivariantPlaylist(multivariant, BASE)
    for (const { url } of [...variants, ...renditions]) if (url !== undefined) await reload(url)
  }
  const reload = async (playlistUrl: string) => {
    const known = texts.get(playlistUrl)
    const current = textOf(playlistUrl.replace(BASE, ''))
    if (current === undefined || current === known) return
    const { sequence, part } = liveEdge(parseMediaPlaylist(current, playlistUrl))
    const isHeld = known?.includes('CAN-BLOCK-RELOAD=YES') === true && !current.includes('ENDLIST')
    const text = isHeld
      ? await load('blocking', withDirectives(playlistUrl, { sequence, part: Math.max(0, part) }))
      : await load('playlist', playlistUrl)
    texts.set(playlistUrl, text)
    for (const { map, parts, url, gap } of parseMediaPlaylist(text, playlistUrl).segments) {
      if (map !== undefined) await loadOnce('init', map.url, playlistUrl)
      for (const part of parts) if (!part.gap) await loadOnce('part', part.url, playlistUrl)
      if (url !== undefined && !gap) await loadOnce('segment', url, playlistUrl)
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
  for (const [playlistUrl, text] of texts) {
    const gone = exchanges.findLast(
      ({ role, url, playlistUrl: own }) =>
        role === 'segment' && own === playlistUrl && !text.includes(url.replace(BASE, '')),
    )
    await probe(load, { playlistUrl, text, goneUrl: gone?.url })
  }
  if (stops) {
    stream.stop('api')
    await visit()
  }
  await app.close()
  return exchanges
}

type Load = (role: RequestRole, url: string, rest?: Partial<Exchange>) => Promise<string>

async function probe(
  load: Load,
  {
    playlistUrl,
    text,
    goneUrl,
  }: { playlistUrl: string; text: string; goneUrl: string | undefined },
): Promise<void> {
  const { segments, serverControl } = parseMediaPlaylist(text, playlistUrl)
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
  if (serverControl?.canBlockReload !== true) return
  await load('old-sequence', withDirectives(playlistUrl, { sequence: last.sequence }))
  await load('far-ahead', withDirectives(playlistUrl, { sequence: last.sequence + 100 }))
  await load('part-without-sequence', withDirectives(playlistUrl, { part: 0 }))
}

/** The exchange with another body, as text. */
export function withBody(exchange: Exchange, edit: (body: string) => string): Exchange {
  const body = Buffer.from(edit(exchange.reply!.body.toString()))
  return { ...exchange, reply: { ...exchange.reply!, body } }
}
