/**
 * Calls of other nodes at this one: whose requests they pass on, and which bodies they have signed. Requests that no node
 * has signed are not affected.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { NODE_CALL, type NodeCalls, type VerifiedCall } from '../auth/node-calls.ts'
import { MillraceError } from '../errors.ts'

const verified = new WeakMap<IncomingMessage, VerifiedCall>()

/** @returns undefined for a request that no node has signed */
export function nodeCallOf(request: IncomingMessage): VerifiedCall | undefined {
  return verified.get(request)
}

/**
 * Verifies the signature of another node. One that is not valid is refused: without it, the client would have the rights
 * of the node that passes its request on.
 *
 * @param calls  undefined without `CLUSTER_SECRET`: every signed call is refused
 * @returns undefined for a request that no node has signed
 * @throws {MillraceError} `NODE_CALL_INVALID`
 */
export function verifyNodeCall(
  request: IncomingMessage,
  calls: NodeCalls | undefined,
): VerifiedCall | undefined {
  const header = request.headers[NODE_CALL]
  if (header === undefined) return undefined
  const { method = '', url: path = '' } = request
  const call = verified.get(request) ?? calls?.verify({ method, path }, String(header))
  if (call === undefined) throw new MillraceError('NODE_CALL_INVALID')
  verified.set(request, call)
  return call
}

/** Verifies the calls of other nodes on all routes of `app`, see `verifyNodeCall`. */
export function verifyNodeCalls(app: FastifyInstance, calls: NodeCalls | undefined): void {
  app.addHook('onRequest', async ({ raw }) => void verifyNodeCall(raw, calls))
}

/** @throws {MillraceError} `NODE_CALL_INVALID` if a node has signed the request with another body */
export function checkSignedBody({ raw }: FastifyRequest, body: Uint8Array): void {
  if (nodeCallOf(raw)?.hasBody(body) === false) throw new MillraceError('NODE_CALL_INVALID')
}

/**
 * Protocol of the client; behind another node, which has signed that it passes on what a client asks, that of the
 * connection there.
 */
export function protocolOf(request: FastifyRequest): 'http' | 'https' {
  const isPassedOn = nodeCallOf(request.raw)?.client !== undefined
  const forwarded = isPassedOn ? request.headers['x-forwarded-proto'] : undefined
  return (forwarded ?? request.protocol) === 'https' ? 'https' : 'http'
}

/** Fence under which this node owns a stream; undefined: it does not own the stream. */
export type FenceOf = (streamId: string) => number | undefined
