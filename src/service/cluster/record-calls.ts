/**
 * Records of streams from the nodes that own them.
 *
 * @module
 */
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import { callNode } from '../../cluster/call-node.ts'
import type { NodeCalls } from '../../cluster/node-calls.ts'
import { MAX_PAGE_STREAMS, StreamId } from '../../contract/schema.ts'
import type { StreamRecord } from '../../contract/streams.ts'
import { MillraceError } from '../../errors.ts'
import { parseRecord } from './stored-record.ts'

/** Time limit of an answer, in milliseconds: afterwards the registry has to do. */
const ANSWER_MS = 300

/** Name of the call, see `NodeRoutes`. */
export const RECORDS = 'records'

const Request = Type.Object({
  streamIds: Type.Array(StreamId, { maxItems: MAX_PAGE_STREAMS }),
  /** Whether the owner is to read what the registry has of the streams first. */
  refresh: Type.Boolean(),
})

export interface RecordRequest {
  readonly streamIds: readonly string[]
  readonly refresh: boolean
}

/** @returns records of those streams that the node owns; undefined if it does not answer */
export async function askRecords(
  calls: NodeCalls | undefined,
  url: string | undefined,
  request: RecordRequest,
): Promise<ReadonlyMap<string, StreamRecord> | undefined> {
  if (calls === undefined || url === undefined) return undefined
  try {
    const asked = { url, call: RECORDS, body: request, timeoutMs: ANSWER_MS }
    const { records } = (await callNode(calls, asked)) as { records: readonly StreamRecord[] }
    return new Map(records.map((record) => [record.streamId, parseRecord(record)]))
  } catch {
    return undefined
  }
}

/** @throws {MillraceError} `BODY_INVALID` */
export function parseRecordRequest(body: unknown): RecordRequest {
  if (!Check(Request, body)) throw new MillraceError('BODY_INVALID')
  return body
}
