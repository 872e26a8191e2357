/**
 * Reports of viewers to the source of their streams, which estimates their number.
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import { machineClock } from '../clock.ts'
import type { PlayableStream, PlaybackSource, ViewerIdentity } from '../contract/streams.ts'
import { addressOf } from './access.ts'
import { connectionOf } from './connection.ts'
import { nodeCallOf } from './node-access.ts'

/** `sid` of Common Media Client Data (CTA-5004), which limits it to 64 characters. */
const SESSION_ID = /(?:^|,) *sid="([^"\\]{1,64})" *(?:,|$)/

/** Max length of a header that is remembered for as long as its connection is open, and of the User-Agent that counts. */
const MAX_HEADER_LENGTH = 256

/** Request line and headers of a request, with its connection. */
export type RequestHead = Pick<
  FastifyRequest['raw'],
  'headers' | 'httpVersionMajor' | 'socket' | 'url'
>

/** Latest report of a connection, with the headers that it depends on. */
interface Report {
  readonly atSec: number
  readonly stream: PlayableStream
  readonly session: unknown
  readonly userAgent: string | undefined
  readonly forwardedFor: unknown
}

export class ViewerReports {
  readonly #source: PlaybackSource
  readonly #latest = new WeakMap<object, Report>()

  constructor(source: PlaybackSource) {
    this.#source = source
  }

  /**
   * Reports the viewer who gets a file of a stream. The same viewer of a connection is reported once a second: a report
   * takes 2 µs of the 30 µs of a reply.
   */
  push(request: FastifyRequest, stream: PlayableStream): void {
    const { raw } = request
    // Other nodes report their viewers themselves.
    if (nodeCallOf(request) !== undefined) return
    if (this.#source.countViewer === undefined || this.isKnown(raw, stream)) return
    const report = reportOf(raw, stream)
    if (isSmall(report) && !hasOwnSession(raw)) this.#latest.set(connectionOf(raw), report)
    const viewer = viewerIdentity(request)
    if (viewer !== undefined) this.#source.countViewer(stream, viewer)
  }

  /** Whether the viewer needs no report, since this second has one. */
  isKnown(raw: RequestHead, stream: PlayableStream): boolean {
    if (this.#source.countViewer === undefined) return true
    if (hasOwnSession(raw)) return false
    const latest = this.#latest.get(connectionOf(raw))
    return latest !== undefined && isSame(latest, raw, stream)
  }
}

function reportOf({ headers }: RequestHead, stream: PlayableStream): Report {
  return {
    atSec: nowSec(),
    stream,
    session: headers['cmcd-session'],
    userAgent: headers['user-agent'],
    forwardedFor: headers['x-forwarded-for'],
  }
}

function isSame(latest: Report, { headers }: RequestHead, stream: PlayableStream): boolean {
  return (
    latest.stream === stream &&
    latest.session === headers['cmcd-session'] &&
    latest.userAgent === headers['user-agent'] &&
    latest.forwardedFor === headers['x-forwarded-for'] &&
    latest.atSec === nowSec()
  )
}

/** Whether the query may name the session, so that a request of another viewer may follow on the connection. */
function hasOwnSession({ url = '' }: RequestHead): boolean {
  return url.includes('CMCD=')
}

function nowSec(): number {
  return Math.floor(machineClock.nowUs() / 1e6)
}

function isSmall({ session, userAgent, forwardedFor }: Report): boolean {
  const headers = [session, userAgent, forwardedFor].filter((header) => header !== undefined)
  return headers.every((header) => typeof header === 'string' && header.length <= MAX_HEADER_LENGTH)
}

/**
 * Reads the session id from the header CMCD-Session or the query argument CMCD.
 *
 * @returns undefined for a client that is gone, and so has no address
 */
function viewerIdentity(request: FastifyRequest): ViewerIdentity | undefined {
  const { headers } = request
  const sessionId = sessionIdIn(headers['cmcd-session']) ?? sessionIdIn(queriedCmcd(request))
  if (sessionId !== undefined) return [sessionId]
  const address = addressOf(request)
  if (address === undefined) return undefined
  return [address, (headers['user-agent'] ?? '').slice(0, MAX_HEADER_LENGTH)]
}

/** @param cmcd  another type for a repeated query argument */
function sessionIdIn(cmcd: unknown): string | undefined {
  return typeof cmcd === 'string' ? SESSION_ID.exec(cmcd)?.[1] : undefined
}

function queriedCmcd({ query }: FastifyRequest): unknown {
  return (query as Record<string, unknown>)['CMCD']
}
