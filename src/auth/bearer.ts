/**
 * Bearer tokens in the header `Authorization` (RFC 6750 section 2.1).
 *
 * @module
 */
import { isSecret } from './same-secret.ts'

/** Whether the header has one of the tokens. The time does not reveal which one, nor how much of it matched. */
export function hasBearer(authorization: string | undefined, tokens: readonly string[]): boolean {
  const [, given] = /^Bearer +(.+)$/i.exec(authorization ?? '') ?? []
  return given !== undefined && tokens.filter((token) => isSecret(given, token)).length > 0
}
