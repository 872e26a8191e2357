/**
 * Who may use the API and read metrics: allowed addresses, and a rate for each of them.
 *
 * @module
 */
import type { BlockList } from 'node:net'
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import { listContains } from '../binary/address-list.ts'
import { networkName } from '../binary/ip-address.ts'
import type { Clock } from '../clock.ts'
import { MillraceError } from '../errors.ts'
import { TokenBucket } from '../token-bucket.ts'

/** Maximum number of remembered clients; the one without a request for longest is forgotten. */
const MAX_CLIENTS = 4096

/** Refuses requests from other addresses on all routes of `app`. */
export function allowAddresses(app: FastifyInstance, allowed: BlockList): void {
  app.addHook('onRequest', async ({ ip }) => {
    // A proxy may forward any text.
    if (isIP(ip) !== 0 && listContains(allowed, ip)) return
    const message = 'the address of the client is not allowed: add its CIDR block to API_FROM'
    throw new MillraceError('ADDRESS_FORBIDDEN', { message })
  })
}

/**
 * Limits the requests of one IPv4 address, or of the /64 of an IPv6 address, on all routes of `app`.
 *
 * @param perSec  requests per second, and requests at once after a quiet time
 */
export function limitRate(app: FastifyInstance, perSec: number, clock: Pick<Clock, 'nowUs'>): void {
  const clients = new LRUCache<string, TokenBucket>({ max: MAX_CLIENTS })
  app.addHook('onRequest', async ({ ip }, reply) => {
    const name = networkName(ip, 4, 8)
    const nowUs = clock.nowUs()
    const bucket = clients.get(name) ?? new TokenBucket(perSec, nowUs, Math.max(perSec, 1))
    clients.set(name, bucket)
    if (bucket.take(nowUs)) return
    reply.header('retry-after', String(Math.ceil(1 / perSec)))
    throw new MillraceError('TOO_MANY_API_REQUESTS')
  })
}
