/**
 * A service that records its streams to S3-compatible storage.
 *
 *   S3_URL=https://… node record.js studio
 */
import { createHash } from 'node:crypto'
import process from 'node:process'
import { AwsClient } from 'aws4fetch'
import { createServer } from 'millrace'
import { Recording } from './recording.js'

/** Longest segment of HLS in seconds, and so EXT-X-TARGETDURATION of a recording. */
const MAX_SEGMENT_SEC = 10

/** Time limit of one upload. */
const UPLOAD_MS = 10_000

/** @param {string} name */
function setting(name) {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}

const bucket = setting('S3_URL').replace(/\/$/, '')
const aws = new AwsClient({
  accessKeyId: setting('AWS_ACCESS_KEY_ID'),
  secretAccessKey: setting('AWS_SECRET_ACCESS_KEY'),
  region: process.env['AWS_REGION'] ?? 'us-east-1',
  service: 's3',
  // `Recording` tries again, after failures of the network too.
  retries: 0,
})

/** @type {import('./recording.js').Upload} */
async function upload(name, body, contentType) {
  const reply = await aws.fetch(`${bucket}/${name}`, {
    method: 'PUT',
    body,
    headers: {
      'content-type': contentType,
      'x-amz-content-sha256': createHash('sha256').update(body).digest('hex'),
    },
    signal: AbortSignal.timeout(UPLOAD_MS),
  })
  // Frees the connection.
  await reply.arrayBuffer()
  if (!reply.ok) throw new Error(`the storage answered ${reply.status} for ${name}`)
}

const server = await createServer({
  hmacSecret: setting('HMAC_SECRET'),
  jwtSecret: setting('JWT_SECRET'),
  logLevel: 'error',
  srt: { port: Number(process.env['SRT_PORT'] ?? 10080) },
  http: { port: Number(process.env['HTTP_PORT'] ?? 8080) },
  hls: { maxSegmentSec: MAX_SEGMENT_SEC },
})

/**
 * Recordings whose last files are being uploaded.
 *
 * @type {Set<Promise<void>>}
 */
const ending = new Set()

/** @param {Recording} recording */
function finish(recording) {
  const end = recording.end()
  ending.add(end)
  void end.then(() => ending.delete(end))
}

server.on('stream', (stream) => {
  /** @type {Recording | undefined} */
  let recording
  stream.on('segment', (segment) => {
    if (segment.rendition !== 'main') return
    recording ??= new Recording({
      folder: `recordings/${stream.id}/${segment.epoch}`,
      targetDurationSec: MAX_SEGMENT_SEC,
      upload,
      onError: (error) => console.error(String(error)),
    })
    recording.add(segment)
  })
  stream.on('end', () => {
    if (recording !== undefined) finish(recording)
  })
})

const { srtUrl } = await server.startStream({ streamId: process.argv[2] ?? 'demo' })
console.log(`publish to ${srtUrl}`)

process.once('SIGTERM', () => void close())
process.once('SIGINT', () => void close())

async function close() {
  await server.close()
  await Promise.all(ending)
}
