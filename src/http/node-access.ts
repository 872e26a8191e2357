/**
 * Calls of other nodes at this one: whose requests they pass on, which streams this node answers for, and under which
 * fence. Requests that no node has signed are not affected.
 *
 * @module
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { NODE_CALL, NODE_FENCE } from '../contract/node-headers.ts'
import { MillraceError } from '../errors.ts'
import type { NodeCalls, VerifiedCall } from '../cluster/node-calls.ts'

const verified = new WeakMap<FastifyRequest, VerifiedCall>()

/** @returns undefined for a request that no node has signed */
export function nodeCallOf(request: FastifyRequest): VerifiedCall | undefined {
  return verified.get(request)
}

/**
 * Protocol of the client; behind another node, which has signed that it passes on what a client asks, that of the
 * connection there.
 */
export function protocolOf(request: FastifyRequest): 'http' | 'https' {
  const isPassedOn = nodeCallOf(request)?.client !== undefined
  const forwarded = isPassedOn ? request.headers['x-forwarded-proto'] : undefined
  return (forwarded ?? request.protocol) === 'https' ? 'https' : 'http'
}

/**
 * Verifies the calls of other nodes on all routes of `app`. A signature that is not valid is refused: without it, the
 * client would have the rights of the node that passes its request on.
 *
 * @param calls  undefined without `CLUSTER_SECRET`: every signed call is refused
 */
export function verifyNodeCalls(app: FastifyInstance, calls: NodeCalls | undefined): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const header = request.headers[NODE_CALL]
    if (header === undefined) {
      done()
      return
    }
    const { method, url: path } = request
    const call = calls?.verify({ method, path }, String(header))
    if (call !== undefined) verified.set(request, call)
    done(call === undefined ? new MillraceError('NODE_CALL_INVALID') : undefined)
  })
}

/** @throws {MillraceError} `NODE_CALL_INVALID` if a node has signed the request with another body */
export function checkSignedBody(request: FastifyRequest, body: Uint8Array): void {
  if (verified.get(request)?.hasBody(body) === false) throw new MillraceError('NODE_CALL_INVALID')
}

/** Fence under which this node owns a stream; undefined: it does not own the stream. */
export type FenceOf = (streamId: string) => number | undefined

/**
 * Answers the calls of other nodes on all routes of `app` with the fence of their stream, and refuses those for a stream
 * of another node.
 */
export function requireOwnership(app: FastifyInstance, fenceOf: FenceOf): void {
  app.addHook<{ Params: { stream_id?: string } }>('onRequest', (request, reply, done) => {
    const { stream_id: streamId } = request.params
    if (nodeCallOf(request) === undefined || streamId === undefined) {
      done()
      return
    }
    const fence = fenceOf(streamId)
    // Files are written past the headers of Fastify.
    if (fence !== undefined) reply.raw.setHeader(NODE_FENCE, String(fence))
    done(fence === undefined ? new MillraceError('NOT_OWNER') : undefined)
  })
}
