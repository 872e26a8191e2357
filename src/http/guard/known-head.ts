/**
 * Heads of one connection that differ only in their path and query, as players send them: what a repeated head asks for is known
 * without parsing it again.
 *
 * @module
 */
import type { IncomingHttpHeaders } from 'node:http'

/** Head that Node's parser has accepted. */
export interface KnownHead {
  /** Copy of the head, with the empty line at its end. */
  readonly bytes: Buffer
  readonly headers: IncomingHttpHeaders
}

/** Maximum size of a head that is remembered for as long as its connection is open. */
const MAX_BYTES = 1024

const CR = 0x0d

/** Request line without its end, with the characters of RFC 3986 only. Other requests are left to Node. */
const REQUEST_LINE = /^GET (\/[A-Za-z0-9/._~-]+(?:\?[A-Za-z0-9/._~!$&'()*+,;=:@?%-]*)?) HTTP\/1\.1$/

/** Begin of a head that means the same with any request line of HTTP/1.1: Node also takes an empty line before it. */
const BEGIN = /^[A-Z]+ [^\r\n]+ HTTP\/1\.1\r\n/

/** @returns `latest` if the head repeats it; undefined for a head that is too long to be remembered, or of another version */
export function rememberHead(
  bytes: Buffer,
  headers: IncomingHttpHeaders,
  latest: KnownHead | undefined,
): KnownHead | undefined {
  if (latest !== undefined && repeatedLine(latest, bytes) !== undefined) return latest
  if (bytes.length > MAX_BYTES || !BEGIN.test(bytes.toString('latin1'))) return undefined
  // Not the bytes themselves: they may be a view of a read of 64 KiB.
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return { bytes: copy, headers }
}

/** @returns path and query of a head that repeats a known one from the end of its request line on; undefined for any other bytes */
export function repeatedPath(known: KnownHead, bytes: Buffer): string | undefined {
  const lineBytes = repeatedLine(known, bytes)
  if (lineBytes === undefined) return undefined
  return REQUEST_LINE.exec(bytes.toString('latin1', 0, lineBytes))?.[1]
}

/** @returns size of the request line, without its end, of such a head */
function repeatedLine({ bytes: known }: KnownHead, bytes: Buffer): number | undefined {
  const lineBytes = bytes.indexOf(CR)
  if (lineBytes === -1) return undefined
  const isRepeated = bytes.compare(known, known.indexOf(CR), known.length, lineBytes) === 0
  return isRepeated ? lineBytes : undefined
}
