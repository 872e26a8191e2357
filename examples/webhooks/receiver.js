/**
 * Receives webhooks: verifies the signature, answers, and handles each event once.
 */
import { createServer } from 'node:http'
import process from 'node:process'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

const MAX_BODY_BYTES = 256 * 1024
const MAX_QUEUED = 1000
/** Number of webhooks whose repetition is noticed. */
const MAX_KNOWN = 10_000

const webhook = new Webhook(process.env['WEBHOOK_SECRET'] ?? '')

/** @typedef {{ type: string, stream_id?: string, data: Record<string, unknown> }} Event */

/** @type {Event[]} */
const queue = []
/**
 * Ids of the latest webhooks, oldest first.
 *
 * @type {Set<string | undefined>}
 */
const known = new Set()
let isWorking = false

const server = createServer((request, reply) => {
  receive(request)
    .then((status) => reply.writeHead(status, { connection: 'close' }).end())
    .catch(() => reply.destroy())
})

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns HTTP status
 */
async function receive(request) {
  if (request.method !== 'POST') return 405
  const chunks = []
  let sizeBytes = 0
  for await (const chunk of request) {
    sizeBytes += chunk.length
    if (sizeBytes > MAX_BODY_BYTES) return 413
    chunks.push(chunk)
  }
  const headers = /** @type {Record<string, string>} */ (request.headers)
  /** @type {Event} */
  let event
  try {
    event = /** @type {Event} */ (webhook.verify(Buffer.concat(chunks), headers))
  } catch (error) {
    return error instanceof WebhookVerificationError ? 403 : 400
  }
  const id = headers['webhook-id']
  if (known.has(id)) return 204
  if (queue.length === MAX_QUEUED) return 503
  known.add(id)
  if (known.size > MAX_KNOWN) known.delete(known.values().next().value)
  queue.push(event)
  if (!isWorking) void work()
  return 204
}

async function work() {
  isWorking = true
  for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
    await handle(event).catch((error) => console.error(error))
  }
  isWorking = false
}

/** @param {Event} event */
async function handle({ type, stream_id: streamId = '', data }) {
  // Your work: databases, messages, calls of other services.
  if (type === 'stream.live') console.log(`${streamId} plays at ${String(data['master_url'])}`)
  else console.log(`${type} ${streamId}`)
}

server.requestTimeout = 10_000
server.listen(Number(process.env['PORT'] ?? 9000), () => console.log('listening'))
process.once('SIGTERM', () => server.close())
