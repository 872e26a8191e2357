/**
 * Calls of this node at another one: see `service/node-routes.ts`.
 *
 * @module
 */
import { isErrorCode, MillraceError } from '../../errors.ts'
import type { NodeClient } from '../edge/node-client.ts'

export interface NodeRequest {
  /** URL of the node, whose path comes before that of the call. */
  readonly url: string
  /** Name of the call. */
  readonly call: string
  readonly body: object
  readonly timeoutMs: number
}

/** `callNode` with the client of this node. */
export type CallNode = (request: NodeRequest) => Promise<unknown>

/**
 * @throws {MillraceError} refusal of the node
 * @throws {Error} if the node cannot be reached, or does not answer in time
 */
export async function callNode(
  client: Pick<NodeClient, 'post'>,
  { url, call, body, timeoutMs }: NodeRequest,
): Promise<unknown> {
  const text = Buffer.from(JSON.stringify(body))
  const signal = AbortSignal.timeout(timeoutMs)
  const { status, bytes } = await client.post(url, `/node/${call}`, text, signal)
  const result = JSON.parse(bytes.toString()) as {
    readonly code?: unknown
    readonly error?: unknown
  }
  if (status >= 200 && status < 300) return result
  if (!isErrorCode(result.code)) throw new Error(`the node answers with status ${status}`)
  throw new MillraceError(result.code, { message: String(result.error) })
}

/** Whether nobody listens at the address of a node, so that its process is gone. */
export function isRefused(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown }
  return code === 'ECONNREFUSED' || (cause !== undefined && isRefused(cause))
}
