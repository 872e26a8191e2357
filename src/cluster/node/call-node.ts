/**
 * Calls of this node at another one: see `service/node-routes.ts`.
 *
 * @module
 */
import { Readable } from 'node:stream'
import { NODE_CALL, type NodeCalls } from '../../auth/node-calls.ts'
import { isErrorCode, MillraceError } from '../../errors.ts'
import { PASSED_LIMITS, ResponseReader } from '../edge/node-client.ts'

const reader = new ResponseReader(PASSED_LIMITS)

export interface NodeRequest {
  /** URL of the node, whose path comes before that of the call. */
  readonly url: string
  /** Name of the call. */
  readonly call: string
  readonly body: object
  readonly timeoutMs: number
}

/** `callNode` with the secrets of this node. */
export type CallNode = (request: NodeRequest) => Promise<unknown>

/**
 * @throws {MillraceError} refusal of the node
 * @throws {Error} if the node cannot be reached, or does not answer in time
 */
export async function callNode(
  calls: NodeCalls,
  { url, call, body, timeoutMs }: NodeRequest,
): Promise<unknown> {
  const path = `/node/${call}`
  const target = new URL(url)
  target.pathname = target.pathname.replace(/\/+$/, '') + path
  const bytes = Buffer.from(JSON.stringify(body))
  // Without the path of the URL, which a proxy removes.
  const signed = calls.sign({ method: 'POST', path, body: bytes })
  const response = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [NODE_CALL]: signed },
    body: bytes,
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  })
  const size = Number(response.headers.get('content-length') ?? 0)
  const text = (await reader.read(Readable.fromWeb(response.body!), size)).toString()
  const result = JSON.parse(text) as { readonly code?: unknown; readonly error?: unknown }
  if (response.ok) return result
  if (!isErrorCode(result.code)) throw new Error(`the node answers with status ${response.status}`)
  throw new MillraceError(result.code, { message: String(result.error) })
}

/** Whether nobody listens at the address of a node, so that its process is gone. */
export function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined
  return cause?.code === 'ECONNREFUSED'
}
