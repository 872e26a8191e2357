/**
 * A small program for each export of the package, which prints `ok`.
 *
 * @module
 */

/** Export -> source in TypeScript. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  '.': `
import { createServer, MillraceError } from 'millrace'
import type { LiveStream, Segment, Server, ServerOptions } from 'millrace'

type ForTheServiceAlone =
  | Extract<keyof LiveStream, 'tick' | 'discard' | 'stop' | 'publish' | 'encryption' | 'pullUrl' | 'pushUrls'>
  | Extract<keyof Server, 'listen' | 'announce' | 'abandon'>
const isHidden: [ForTheServiceAlone] extends [never] ? true : false = true

const options: ServerOptions = {
  hmacSecret: 'h'.repeat(32),
  jwtSecret: 'j'.repeat(32),
  logLevel: 'silent',
  http: { host: '127.0.0.1', port: 0 },
  srt: { host: '127.0.0.1', port: 0 },
}
const sizes: number[] = []
const server = await createServer(options)
server.on('stream', (stream) => {
  stream.on('segment', (segment: Segment) => sizes.push(segment.sizeBytes))
})
const { playlistUrl } = await server.startStream({ streamId: 'studio' })
const live = await fetch(\`http://127.0.0.1:\${server.httpPort}/health/live\`)
await server.close()
const refusal = await createServer({ ...options, hmacSecret: '' }).catch((error: unknown) => error)
const isRefused = refusal instanceof MillraceError && refusal.code === 'CONFIG_INVALID'
console.log(live.ok && isRefused && isHidden && playlistUrl.endsWith('.m3u8') ? 'ok' : 'failed')
`,
  './srt': `
import { connect, createListener } from 'millrace/srt'

console.log([connect, createListener].every((value) => typeof value === 'function') ? 'ok' : 'failed')
`,
  './mpegts': `
import { Demuxer, type Track } from 'millrace/mpegts'

const demuxer = new Demuxer()
const tracks: readonly Track[] = []
console.log(demuxer instanceof Demuxer && tracks.length === 0 ? 'ok' : 'failed')
`,
  './hls': `
import { formatMediaPlaylist, SegmentCache, type MediaPlaylist } from 'millrace/hls'

const cache = new SegmentCache({ maxBytes: 16 * 1024 * 1024 })
const format: (playlist: MediaPlaylist) => string = formatMediaPlaylist
console.log(cache instanceof SegmentCache && format.length > 0 ? 'ok' : 'failed')
`,
  './fastify': `
import { fastify } from 'fastify'
import { playback, type PlaybackSource } from 'millrace/fastify'

const source: PlaybackSource = { findStream: () => undefined }
const app = fastify()
await app.register(playback, { prefix: '/video', source })
const reply = await app.inject('/video/studio/playlist.m3u8')
console.log(reply.statusCode === 404 ? 'ok' : 'failed')
`,
  './check': `
import { checkStream } from 'millrace/check'

console.log(typeof checkStream === 'function' ? 'ok' : 'failed')
`,
  './client': `
import { ApiError, Client, type ResponseData } from 'millrace/client'

const reply = Response.json({ success: false, error: 'no', code: 'STREAM_NOT_FOUND' }, { status: 404 })
const client = new Client({ url: 'http://127.0.0.1', secret: 's', fetch: async () => reply })
const call: Promise<ResponseData<'status'>> = client.call('status', { stream_id: 'studio' })
const refusal = await call.catch((error: unknown) => error)
console.log(refusal instanceof ApiError && refusal.code === 'STREAM_NOT_FOUND' ? 'ok' : 'failed')
`,
  './package.json': `
import manifest from 'millrace/package.json' with { type: 'json' }

console.log(manifest.name === 'millrace' ? 'ok' : 'failed')
`,
}
