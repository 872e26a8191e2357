/**
 * Call that asks the owner of a stream to yield it to the node that calls.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import { StreamId } from '../../contract/schema.ts'
import { MillraceError } from '../../errors.ts'

const YieldRequest = Type.Object({
  stream_id: StreamId,
  /** Claim to give up: a call that somebody repeats names an earlier one. */
  fence: Type.Number(),
})

export type YieldRequest = Static<typeof YieldRequest>

/** @throws {MillraceError} `BODY_INVALID` */
export function parseYieldRequest(body: unknown): YieldRequest {
  if (!Check(YieldRequest, body)) throw new MillraceError('BODY_INVALID')
  return body
}
