/**
 * Calls of this node at another one: see `http/node-routes.ts`.
 *
 * @module
 */
import { NODE_CALL } from '../contract/node-headers.ts'
import { isErrorCode, MillraceError } from '../errors.ts'
import type { NodeCalls } from './node-calls.ts'

/** Maximum size of an answer. */
const MAX_ANSWER_BYTES = 1024 * 1024

export interface NodeRequest {
  /** URL of the node, whose path comes before that of the call. */
  readonly url: string
  /** Name of the call. */
  readonly call: string
  readonly body: object
  readonly timeoutMs: number
}

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
  const reply = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [NODE_CALL]: signed },
    body: bytes,
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  })
  const size = Number(reply.headers.get('content-length') ?? 0)
  if (size > MAX_ANSWER_BYTES) throw new Error(`an answer of ${size} bytes`)
  const answer = (await reply.json()) as { readonly code?: unknown; readonly error?: unknown }
  if (reply.ok) return answer
  if (!isErrorCode(answer.code)) throw new Error(`the node answers with status ${reply.status}`)
  throw new MillraceError(answer.code, { message: String(answer.error) })
}

/** Whether nobody listens at the address of a node, so that its process is gone. */
export function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined
  return cause?.code === 'ECONNREFUSED'
}
