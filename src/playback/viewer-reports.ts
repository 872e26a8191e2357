/**
 * Reports of viewers to the source of their streams, which estimates their number.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import { parse } from 'node:querystring'
import { machineClock } from '../timing/clock.ts'
import type { Viewer } from './access.ts'
import type { PlayableStream, PlaybackSource, ViewerIdentity } from './playback-source.ts'
import { connectionOf } from '../http/response.ts'

/** `sid` of Common Media Client Data (CTA-5004), which limits it to 64 characters. */
const SESSION_ID = /(?:^|,) *sid="([^"\\]{1,64})" *(?:,|$)/

/** Max length of a header that is remembered for as long as its connection is open, and of the User-Agent that counts. */
const MAX_HEADER_LENGTH = 256

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
   * takes 2 µs.
   */
  push(viewer: Viewer & { readonly request: IncomingMessage }, stream: PlayableStream): void {
    const { request, call } = viewer
    // Other nodes report their viewers themselves.
    if (call !== undefined || this.#source.countViewer === undefined) return
    // The query may name the session, so that a request of another viewer may follow on the connection.
    const hasOwnSession = request.url!.includes('CMCD=')
    const connection = connectionOf(request)
    const latest = hasOwnSession ? undefined : this.#latest.get(connection)
    if (latest !== undefined && isSame(latest, request, stream)) return
    const report = reportOf(request, stream)
    if (isSmall(report) && !hasOwnSession) this.#latest.set(connection, report)
    const identity = viewerIdentity(request, viewer.readAddress)
    if (identity !== undefined) this.#source.countViewer(stream, identity)
  }
}

function reportOf({ headers }: IncomingMessage, stream: PlayableStream): Report {
  return {
    atSec: nowSec(),
    stream,
    session: headers['cmcd-session'],
    userAgent: headers['user-agent'],
    forwardedFor: headers['x-forwarded-for'],
  }
}

function isSame(latest: Report, { headers }: IncomingMessage, stream: PlayableStream): boolean {
  return (
    latest.stream === stream &&
    latest.session === headers['cmcd-session'] &&
    latest.userAgent === headers['user-agent'] &&
    latest.forwardedFor === headers['x-forwarded-for'] &&
    latest.atSec === nowSec()
  )
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
function viewerIdentity(
  { headers, url }: IncomingMessage,
  readAddress: Viewer['readAddress'],
): ViewerIdentity | undefined {
  const sessionId = sessionIdIn(headers['cmcd-session']) ?? sessionIdIn(queriedCmcd(url!))
  if (sessionId !== undefined) return [sessionId]
  const address = readAddress()
  if (address === undefined) return undefined
  return [address, (headers['user-agent'] ?? '').slice(0, MAX_HEADER_LENGTH)]
}

/** @param cmcd  another type for a repeated query argument */
function sessionIdIn(cmcd: unknown): string | undefined {
  return typeof cmcd === 'string' ? SESSION_ID.exec(cmcd)?.[1] : undefined
}

function queriedCmcd(url: string): unknown {
  const query = url.indexOf('?')
  return query === -1 ? undefined : parse(url.slice(query + 1))['CMCD']
}
