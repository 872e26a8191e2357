/**
 * Statistics of encoders in the format of SRT Live Server, for NOALBS and others that read it.
 */
import { createServer } from 'node:http'
import process from 'node:process'
import { Client } from 'millrace/client'

/** Time for which statistics are not asked for again. */
const MAX_AGE_MS = 1000

const client = new Client({
  url: process.env['MILLRACE_URL'] ?? 'http://127.0.0.1:8080',
  secret: process.env['HMAC_SECRET'] ?? '',
})

/** @typedef {import('millrace/client').ResponseData<'streams'>['streams'][number]} Stream */

/** @type {{ atMs: number, statistics: Promise<object> } | undefined} */
let latest

/** Statistics of all streams, at most a second old. */
function readStatistics() {
  const nowMs = performance.now()
  if (latest === undefined || nowMs - latest.atMs >= MAX_AGE_MS) {
    latest = { atMs: nowMs, statistics: listPublishers() }
  }
  return latest.statistics
}

async function listPublishers() {
  /** @type {Record<string, object>} */
  const publishers = {}
  /** @type {import('millrace/client').ResponseData<'streams'> | undefined} */
  let page
  do {
    const body = page?.next == null ? {} : { after: page.next }
    const signal = AbortSignal.timeout(5000)
    page = await client.call('streams', { status: 'STREAMING', ...body }, { signal })
    for (const { stream_id: id, publisher, live_since: liveSince } of page.streams) {
      if (publisher !== null) publishers[id] = describe(publisher, liveSince)
    }
  } while (page.next !== null)
  return { publishers, status: 'ok' }
}

/**
 * @param {NonNullable<Stream['publisher']>} publisher
 * @param {string | null} liveSince
 */
function describe(publisher, liveSince) {
  const packetBytes = publisher.bytes_received / Math.max(1, publisher.packets_received ?? 0)
  const bytesOf = (/** @type {number} */ packets) => Math.round(packets * packetBytes)
  const { packets_dropped: dropped = 0, packets_lost: lost = 0 } = publisher
  return {
    // Kbit/s; NOALBS stays in its scene while it is 0.
    bitrate: Math.round(publisher.bitrate_bps / 1000),
    rtt: publisher.rtt_ms ?? 0,
    pktRcvDrop: dropped,
    pktRcvLoss: lost,
    bytesRcvDrop: bytesOf(dropped),
    bytesRcvLoss: bytesOf(lost),
    mbpsRecvRate: publisher.bitrate_bps / 1e6,
    // Millrace does not estimate the bandwidth of the line.
    mbpsBandwidth: 0,
    msRcvBuf: Math.round(publisher.latency_ms ?? 0),
    uptime: liveSince === null ? 0 : Math.round((Date.now() - Date.parse(liveSince)) / 1000),
  }
}

const server = createServer((request, reply) => {
  answer(request.method === 'GET' ? request.url : undefined)
    .then(({ status, body }) => reply.writeHead(status, TYPE).end(body))
    .catch(() => reply.destroy())
})

const TYPE = { 'content-type': 'application/json' }

/** @param {string | undefined} path */
async function answer(path) {
  if (path !== '/stats') return { status: 404, body: '{}' }
  try {
    return { status: 200, body: JSON.stringify(await readStatistics()) }
  } catch (error) {
    console.error(String(error))
    return { status: 502, body: '{}' }
  }
}

// Whoever reads it learns the ids of all streams.
server.listen(Number(process.env['PORT'] ?? 8181), process.env['HOST'] ?? '127.0.0.1', () =>
  console.log('listening'),
)
process.once('SIGTERM', () => server.close())
