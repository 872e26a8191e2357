/**
 * Files of a record: an index in JSON lines, and bodies named by their SHA-256.
 *
 * ```
 * DIR/exchanges.jsonl   first line: the check; then an exchange a line, in the order in which rules saw them
 * DIR/bodies/{sha256}
 * ```
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { ROLES, type Role } from '../exchange.ts'

export const INDEX_FILE = 'exchanges.jsonl'
export const BODIES_FOLDER = 'bodies'
export const RECORD_VERSION = 1

/** Maximum size of the bodies of a record; later exchanges are dropped. */
export const MAX_RECORD_BYTES = 2 * 1024 ** 3

const Time = Type.Number({ minimum: 0, maximum: 1e14 })
const Headers = Type.Record(Type.String({ maxLength: 256 }), Type.String({ maxLength: 16_384 }))
const Url = Type.String({ pattern: '^https?://', maxLength: 16_384 })

/** First line of the index. */
export const RecordHead = Type.Object({
  format: Type.Literal('millrace-check'),
  version: Type.Literal(RECORD_VERSION),
  url: Url,
})
export type RecordHead = Static<typeof RecordHead>

/** Exchange whose body is a file. */
export const RecordedExchange = Type.Object({
  role: Type.Unsafe<Role>(Type.Union(ROLES.map((role) => Type.Literal(role)))),
  method: Type.Union([Type.Literal('GET'), Type.Literal('HEAD'), Type.Literal('OPTIONS')]),
  url: Url,
  playlistUrl: Type.Optional(Url),
  headers: Headers,
  sentAtMs: Time,
  failure: Type.Optional(Type.String({ maxLength: 1024 })),
  reply: Type.Optional(
    Type.Object({
      status: Type.Integer({ minimum: 100, maximum: 999 }),
      headers: Headers,
      url: Url,
      protocol: Type.Union([Type.Literal('http/1.1'), Type.Literal('h2')]),
      encodedBytes: Type.Optional(Type.Integer({ minimum: 0 })),
      headersAtMs: Time,
      endedAtMs: Time,
      longestPauseMs: Type.Number({ minimum: 0 }),
      /** SHA-256 of the body in hexadecimal: its file name, which can name no other folder. */
      body: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    }),
  ),
})
export type RecordedExchange = Static<typeof RecordedExchange>
