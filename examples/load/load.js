/**
 * Loads a live stream: its playlist, and the segment that is the newest at the time of each request.
 */
import process from 'node:process'
import { parseArgs } from 'node:util'
import autocannon from 'autocannon'

const MAX_CONNECTIONS = 1000
const MAX_SECONDS = 600
const RELOAD_MS = 500

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    connections: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
  },
})
const connections = within('connections', values.connections, MAX_CONNECTIONS)
const seconds = within('seconds', values.seconds, MAX_SECONDS)
const playlistUrl = new URL(positionals[0] ?? 'http://127.0.0.1:8080/video/demo/playlist.m3u8')

/**
 * @param {string} name
 * @param {string} text
 * @param {number} max
 */
function within(name, text, max) {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new Error(`--${name} must be a whole number from 1 to ${max}`)
}

/** Path of the newest segment. */
async function findNewest() {
  const reply = await fetch(playlistUrl, { signal: AbortSignal.timeout(10_000) })
  if (!reply.ok) throw new Error(`${reply.status} for ${playlistUrl.href}`)
  const uris = (await reply.text()).split(/\r?\n/).filter((line) => line !== '' && line[0] !== '#')
  const newest = uris.at(-1)
  if (newest === undefined) throw new Error('the playlist has no segment')
  const { pathname, search } = new URL(newest, playlistUrl)
  return pathname + search
}

let newest = await findNewest()
const segments = new Set([newest])
const timer = setInterval(() => {
  findNewest().then(
    (path) => segments.add((newest = path)),
    (error) => console.error(String(error)),
  )
}, RELOAD_MS)

const result = await autocannon({
  url: playlistUrl.origin,
  connections,
  duration: seconds,
  requests: [
    { method: 'GET', path: playlistUrl.pathname + playlistUrl.search },
    { method: 'GET', setupRequest: (request) => ({ ...request, path: newest }) },
  ],
})
clearInterval(timer)

const failures = result.non2xx + result.errors + result.timeouts
console.log(
  JSON.stringify({
    requests_per_sec: Math.round(result.requests.total / result.duration),
    megabytes_per_sec: Number((result.throughput.total / result.duration / 1e6).toFixed(1)),
    latency_ms: { p50: result.latency.p50, p99: result.latency.p99, max: result.latency.max },
    segments: segments.size,
    failures,
  }),
)
process.exitCode = failures > 0 ? 1 : 0
