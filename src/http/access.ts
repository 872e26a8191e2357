/**
 * Who may use the API and read metrics: allowed addresses, and a rate for each of them.
 *
 * @module
 */
import type { BlockList } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { listContains } from '../binary/address-list.ts'
import { bareAddress, networkName } from '../binary/ip-address.ts'
import type { Clock } from '../clock.ts'
import { MillraceError, type ErrorCode } from '../errors.ts'
import { TokenBucket } from '../token-bucket.ts'
import { nodeCallOf } from './node-access.ts'

/** Maximum number of remembered clients; the one without a request for longest is forgotten. */
const MAX_CLIENTS = 4096

/**
 * Address of the client that sent `request`, without a port or a zone; behind `TRUST_PROXY` the forwarded one, behind
 * another node the one that it has signed.
 *
 * @throws {MillraceError} `REQUEST_MALFORMED` if a proxy forwards no address, or the connection was reset at once
 */
export function clientAddress(request: FastifyRequest): string {
  const address = addressOf(request)
  if (address !== undefined) return address
  const message = 'the client has no IP address: check what the proxy sends as X-Forwarded-For'
  throw new MillraceError('REQUEST_MALFORMED', { message })
}

/** Like `clientAddress`; undefined where that throws. */
export function addressOf(request: FastifyRequest): string | undefined {
  const ip: string | undefined = nodeCallOf(request)?.client ?? request.ip
  return ip === undefined ? undefined : bareAddress(ip)
}

/** Whether `proxies` contains a hop, from the connection or from `X-Forwarded-For`; undefined: a reset connection. */
export function isTrusted(proxies: BlockList, hop: string | undefined): boolean {
  const address = hop === undefined ? undefined : bareAddress(hop)
  return address !== undefined && listContains(proxies, address)
}

/** Refuses requests from other addresses on all routes of `app`. */
export function allowAddresses(app: FastifyInstance, allowed: BlockList): void {
  app.addHook('onRequest', async (request) => {
    const address = clientAddress(request)
    if (listContains(allowed, address)) return
    const message = `the address of the client is not allowed: add ${address}, or its CIDR block, to API_FROM`
    throw new MillraceError('ADDRESS_FORBIDDEN', { message })
  })
}

export interface RateLimit {
  /** Requests per second. */
  readonly perSec: number
  /** Requests at once after a quiet time; default: those of a second, at least one. */
  readonly atOnce?: number
  readonly clock: Pick<Clock, 'nowUs'>
  /** Refusal of further requests. */
  readonly refusal: ErrorCode
  /** Whether a request counts; default: each does. */
  readonly counts?: (request: FastifyRequest) => boolean
}

/** Limits the requests of one IPv4 address, or of the /64 of an IPv6 address, on all routes of `app`. */
export function limitRate(
  app: FastifyInstance,
  { perSec, atOnce = Math.max(perSec, 1), clock, refusal, counts = () => true }: RateLimit,
): void {
  const clients = new LRUCache<string, TokenBucket>({ max: MAX_CLIENTS })
  app.addHook('onRequest', async (request, reply) => {
    if (!counts(request)) return
    const name = networkName(clientAddress(request), 4, 8)
    const nowUs = clock.nowUs()
    const bucket = clients.get(name) ?? new TokenBucket(perSec, nowUs, atOnce)
    clients.set(name, bucket)
    if (bucket.take(nowUs)) return
    reply.header('retry-after', String(Math.ceil(1 / perSec)))
    throw new MillraceError(refusal)
  })
}
