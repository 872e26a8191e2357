/**
 * Who a viewer is, for an estimate of their number: the session of a player, else address and User-Agent.
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import type { ViewerIdentity } from '../contract/streams.ts'
import { addressOf } from './access.ts'

/** `sid` of Common Media Client Data (CTA-5004), whose 64 characters are its limit there. */
const SESSION_ID = /(?:^|,) *sid="([^"\\]{1,64})" *(?:,|$)/

const MAX_USER_AGENT_LENGTH = 256

/**
 * Reads the session id from the header CMCD-Session or the query argument CMCD, both of CTA-5004.
 *
 * @returns undefined for a client that is gone, and so has no address
 */
export function viewerIdentity(request: FastifyRequest): ViewerIdentity | undefined {
  const { headers } = request
  const sessionId = sessionIdIn(headers['cmcd-session']) ?? sessionIdIn(queriedCmcd(request))
  if (sessionId !== undefined) return [sessionId]
  const address = addressOf(request)
  if (address === undefined) return undefined
  return [address, (headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT_LENGTH)]
}

/** @param cmcd  another type for a repeated query argument */
function sessionIdIn(cmcd: unknown): string | undefined {
  return typeof cmcd === 'string' ? SESSION_ID.exec(cmcd)?.[1] : undefined
}

function queriedCmcd({ query }: FastifyRequest): unknown {
  return (query as Record<string, unknown>)['CMCD']
}
