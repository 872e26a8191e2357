/**
 * Audit log: a line for each API call that changes something, with its fields except secrets, the client, the secret
 * that signed it and the result.
 *
 * @module
 */
import { ENDPOINTS, type EndpointName } from '../endpoints.ts'
import { BODIES } from './bodies.ts'
import type { Logger } from '../../logger.ts'
import { asRefusal } from '../../http/error-handler.ts'

interface AuditedCall {
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
  if (logger === undefined || !ENDPOINTS[name].isAudited) return call()
  const { properties } = BODIES[name]
  // The line has a time of its own.
  const { issued_at: _, ...given } = body
  const fields = Object.fromEntries(
    Object.entries(given).filter(
      ([field]) => Object.hasOwn(properties, field) && !('writeOnly' in properties[field]!),
    ),
  )
  const write = (result: string) =>
    logger.info({ audit: name, ...fields, key, client, result }, 'API call')
  try {
    const response = await call()
    write('ok')
    return response
  } catch (error) {
    write(asRefusal(error).code)
    throw error
  }
}
