/**
 * Audit log: a line for each API call that changes something, with the client, the secret that signed it and the
 * result.
 *
 * @module
 */
import type { EndpointName } from '../contract/endpoints.ts'
import type { Logger } from '../logger.ts'
import { asRefusal } from './error-handler.ts'

/** Calls that change nothing. */
const READING: ReadonlySet<EndpointName> = new Set<EndpointName>(['status', 'streams', 'nodes'])

/** Fields of a body that the line contains. Others may hold secrets, for example those of webhook URLs. */
const LOGGED_FIELDS = [
  'stream_id',
  'revoke',
  'ban_sec',
  'encryption',
  'allow_from',
  'latency_ms',
  'formats',
  'segment_sec',
  'part_ms',
  'playlist_segments',
  'playback_token',
]

export interface AuditedCall {
  readonly name: EndpointName
  readonly body: Readonly<Record<string, unknown>>
  /** See `keyId`; `admin` for a call of the dashboard. */
  readonly key: string
  /** Address of the client. */
  readonly client: string
}

/** Makes the call, and writes its line; undefined writes none. */
export async function audit(
  logger: Logger | undefined,
  { name, body, key, client }: AuditedCall,
  call: () => Promise<unknown>,
): Promise<unknown> {
  if (logger === undefined || READING.has(name)) return call()
  const fields = Object.fromEntries(
    LOGGED_FIELDS.filter((field) => field in body).map((field) => [field, body[field]]),
  )
  const write = (result: string) =>
    logger.info({ audit: name, ...fields, key, client, result }, 'API call')
  try {
    const answer = await call()
    write('ok')
    return answer
  } catch (error) {
    write(asRefusal(error).code)
    throw error
  }
}
