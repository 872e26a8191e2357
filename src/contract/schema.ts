/**
 * Request bodies of the API: schemas, TypeScript types, and error messages by field.
 *
 * @module
 */
import { Type } from 'typebox'
import { Errors } from 'typebox/value'
import { isAddressBlock } from '../binary/address-list.ts'
import { MillraceError } from '../errors.ts'
import type { Format } from '../hls/file-names.ts'
import { MAX_LATENCY_MS } from '../srt/wire/limits.ts'
import type { StartRequest } from './streams.ts'
import { onTheWire } from './wire-names.ts'

const MAX_STREAM_ID_CHARACTERS = 128
const STREAM_ID = new RegExp(`^(?!\\.)[A-Za-z0-9._~-]{1,${MAX_STREAM_ID_CHARACTERS}}$`)
export const MAX_WEBHOOK_URLS = 16
export const MAX_WEBHOOK_URL_LENGTH = 2048
const MAX_BAN_SEC = 86_400
/** Maximum and default number of streams on a page: 100 records take about 5 ms. */
export const MAX_PAGE_STREAMS = 100

export const FORMATS = ['ts', 'cmaf'] as const satisfies readonly Format[]

/** Bounds of settings that a stream may have of its own. */
export const SEGMENT_SEC = { minimum: 0.5, maximum: 60 }
export const PART_MS = { minimum: 100, maximum: 1000 }
export const PLAYLIST_SEGMENTS = { minimum: 3, maximum: 1000 }
export const LATENCY_MS = { minimum: 20, maximum: MAX_LATENCY_MS }
const MAX_ADDRESS_BLOCKS = 64

/** Allowed values by field, for error messages. */
export const ALLOWED = {
  stream_id: `must be 1 to ${MAX_STREAM_ID_CHARACTERS} characters of A-Z a-z 0-9 . _ ~ - and not start with a dot`,
  webhook_urls: `must be at most ${MAX_WEBHOOK_URLS} http or https URLs of at most ${MAX_WEBHOOK_URL_LENGTH} characters, without user name and password`,
  encryption: 'must be true or false',
  formats: `must be a list of ${FORMATS.join(', ')} or both`,
  segment_sec: `must be a number from ${SEGMENT_SEC.minimum} to ${SEGMENT_SEC.maximum}`,
  part_ms: `must be a whole number from ${PART_MS.minimum} to ${PART_MS.maximum}`,
  playlist_segments: `must be a whole number from ${PLAYLIST_SEGMENTS.minimum} to ${PLAYLIST_SEGMENTS.maximum}`,
  latency_ms: `must be a whole number from ${LATENCY_MS.minimum} to ${LATENCY_MS.maximum}`,
  allow_from: `must be 1 to ${MAX_ADDRESS_BLOCKS} IP addresses or CIDR blocks`,
  playback_token: 'must be true or false',
  revoke: 'must be true or false',
  ban_sec: `must be 0 to ${MAX_BAN_SEC} seconds`,
  status: 'must be READY, STREAMING, INTERRUPTED or STOPPED',
  limit: `must be a whole number from 1 to ${MAX_PAGE_STREAMS}`,
  after: 'must be the `next` of the previous page',
  issued_at: 'must be a number of seconds since 1970',
}

/** Id of a stream: safe in a URL path and a file name, and so short that its stream key fits an SRT StreamID. */
export const StreamId = Type.String({
  pattern: STREAM_ID.source,
  description: ALLOWED.stream_id,
})

/** The same check, for ids from elsewhere than a body: stream keys, paths, the registry of a cluster. */
export function isStreamId(id: unknown): id is string {
  return typeof id === 'string' && STREAM_ID.test(id)
}

export const WebhookUrls = Type.Array(
  Type.Refine(Type.String({ maxLength: MAX_WEBHOOK_URL_LENGTH }), isWebhookUrl),
  { maxItems: MAX_WEBHOOK_URLS, description: ALLOWED.webhook_urls },
)

export const STREAM_STATES = ['READY', 'STREAMING', 'INTERRUPTED', 'STOPPED'] as const

const IssuedAt = Type.Optional(Type.Number({ minimum: 0, description: ALLOWED.issued_at }))

export const StartStreamBody = Type.Object({
  stream_id: StreamId,
  issued_at: IssuedAt,
  webhook_urls: Type.Optional(WebhookUrls),
  encryption: Type.Optional(Type.Boolean({ description: ALLOWED.encryption })),
  formats: Type.Optional(
    Type.Array(Type.Enum([...FORMATS]), {
      minItems: 1,
      uniqueItems: true,
      description: ALLOWED.formats,
    }),
  ),
  segment_sec: Type.Optional(Type.Number({ ...SEGMENT_SEC, description: ALLOWED.segment_sec })),
  part_ms: Type.Optional(Type.Integer({ ...PART_MS, description: ALLOWED.part_ms })),
  playlist_segments: Type.Optional(
    Type.Integer({ ...PLAYLIST_SEGMENTS, description: ALLOWED.playlist_segments }),
  ),
  latency_ms: Type.Optional(Type.Integer({ ...LATENCY_MS, description: ALLOWED.latency_ms })),
  allow_from: Type.Optional(
    Type.Array(Type.Refine(Type.String(), isAddressBlock), {
      minItems: 1,
      maxItems: MAX_ADDRESS_BLOCKS,
      description: ALLOWED.allow_from,
    }),
  ),
  playback_token: Type.Optional(Type.Boolean({ description: ALLOWED.playback_token })),
})

export const StopStreamBody = Type.Object({
  stream_id: StreamId,
  issued_at: IssuedAt,
  revoke: Type.Optional(Type.Boolean({ description: ALLOWED.revoke })),
})

export const StreamBody = Type.Object({ stream_id: StreamId, issued_at: IssuedAt })

export const KickBody = Type.Object({
  stream_id: StreamId,
  issued_at: IssuedAt,
  ban_sec: Type.Optional(
    Type.Number({ minimum: 0, maximum: MAX_BAN_SEC, description: ALLOWED.ban_sec }),
  ),
})

export const StreamsBody = Type.Object({
  issued_at: IssuedAt,
  status: Type.Optional(Type.Enum([...STREAM_STATES], { description: ALLOWED.status })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PAGE_STREAMS, description: ALLOWED.limit }),
  ),
  after: Type.Optional(
    Type.String({ maxLength: MAX_STREAM_ID_CHARACTERS, description: ALLOWED.after }),
  ),
})

export const NodesBody = Type.Object({ issued_at: IssuedAt })

/** Formats the error of the first invalid field, with its allowed values; for Fastify's `setSchemaErrorFormatter`. */
export function formatBodyError(
  errors: readonly { readonly instancePath: string; readonly keyword: string }[],
): Error {
  const field = errors[0]?.instancePath.split('/')[1]
  // Only stream_id is required.
  const required = errors[0]?.keyword === 'required' ? ' with stream_id' : ''
  const message = isBodyField(field)
    ? `${field} ${ALLOWED[field]}`
    : `the request body must be a JSON object${required}`
  return new Error(message)
}

/**
 * Checks the arguments of `startStream` in the library against the schema of the HTTP request.
 *
 * @throws {MillraceError} `BODY_INVALID` with the message of the HTTP response
 */
export function checkStartRequest(request: StartRequest): void {
  const errors = Errors(StartStreamBody, onTheWire(request))
  if (errors.length === 0) return
  throw new MillraceError('BODY_INVALID', { message: formatBodyError(errors).message })
}

function isBodyField(field: string | undefined): field is keyof typeof ALLOWED {
  return field !== undefined && Object.hasOwn(ALLOWED, field)
}

/** Whether the text is a webhook URL without credentials. */
function isWebhookUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}
