/**
 * Addresses of clients: which may use the API and read metrics, and how often each may ask.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import type { BlockList } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { bareAddress, listContains, networkName } from '../binary/ip-address.ts'
import type { Clock } from '../timing/clock.ts'
import { MillraceError, type ErrorCode } from '../errors.ts'
import { TokenBucket } from '../timing/token-bucket.ts'
import { nodeCallOf } from './node-access.ts'

/**
 * Address of the client that sent `request`, without a port or a zone; behind `TRUST_PROXY` the forwarded one, behind
 * another node the one that it has signed.
 *
 * @throws {MillraceError} `REQUEST_MALFORMED` if a proxy forwards no address, or the connection was reset at once
 */
export function clientAddress(request: FastifyRequest): string {
  return requireAddress(addressOf(request))
}

/** Like `clientAddress`; undefined where that throws. */
export function addressOf(request: FastifyRequest): string | undefined {
  const ip: string | undefined = nodeCallOf(request.raw)?.client ?? request.ip
  return ip === undefined ? undefined : bareAddress(ip)
}

/** @throws {MillraceError} `REQUEST_MALFORMED` */
export function requireAddress(address: string | undefined): string {
  if (address !== undefined) return address
  const message = 'the client has no IP address: check what the proxy sends as X-Forwarded-For'
  throw new MillraceError('REQUEST_MALFORMED', { message })
}

/** Whether the hop of a request is a proxy that is believed; hop 0 is the peer of the connection. */
export type TrustHop = (address: string | undefined, hop: number) => boolean

/** Like `addressOf`, for a request that no framework has seen. */
export function rawAddressOf(request: IncomingMessage, trust: TrustHop): string | undefined {
  const client = nodeCallOf(request)?.client
  if (client !== undefined) return bareAddress(client)
  // As Fastify finds `request.ip`; undefined for a reset connection.
  const address: string | undefined = proxyAddr(request, trust)
  return address === undefined ? undefined : bareAddress(address)
}

/**
 * @param trustProxy  proxies that are believed; undefined: none
 * @param trustPeers  whether every peer is, as on a private Unix socket
 */
export function trustOf(trustProxy: BlockList | undefined, trustPeers = false): TrustHop {
  return (address, hop) =>
    (trustPeers && hop === 0) || (trustProxy !== undefined && isTrusted(trustProxy, address))
}

/** Whether `proxies` contains a hop, from the connection or from `X-Forwarded-For`; undefined: a reset connection. */
function isTrusted(proxies: BlockList, hop: string | undefined): boolean {
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

/** Maximum number of remembered clients; the one without a request for longest is forgotten. */
const MAX_CLIENTS = 4096

interface RateLimit {
  /** Requests per second. */
  readonly perSec: number
  /** Requests at once after a quiet time; default: those of a second, at least one. */
  readonly atOnce?: number
  readonly clock: Pick<Clock, 'nowUs'>
  /** Refusal of further requests. */
  readonly refusal: ErrorCode
}

/** Limits the requests of one IPv4 address, or of the /64 of an IPv6 address. */
export class ClientRate {
  readonly #limit: RateLimit
  readonly #clients = new LRUCache<string, TokenBucket>({ max: MAX_CLIENTS })
  readonly #refusal: MillraceError

  constructor(limit: RateLimit) {
    this.#limit = limit
    this.#refusal = new MillraceError(limit.refusal, { retryAfterSec: Math.ceil(1 / limit.perSec) })
  }

  /** @throws {MillraceError} the refusal, with the time after which one more request is possible */
  take(address: string): void {
    const { perSec, atOnce = Math.max(perSec, 1), clock } = this.#limit
    const name = networkName(address, 4, 8)
    const nowUs = clock.nowUs()
    const bucket = this.#clients.get(name) ?? new TokenBucket(perSec, nowUs, atOnce)
    this.#clients.set(name, bucket)
    if (!bucket.take(nowUs)) throw this.#refusal
  }
}

/** Limits the requests of each client on all routes of `app`. */
export function limitRate(app: FastifyInstance, limit: RateLimit): void {
  const rate = new ClientRate(limit)
  app.addHook('onRequest', async (request) => rate.take(clientAddress(request)))
}
