/**
 * The bodies of the API, once: what they look like, what TypeScript makes of them, what a client is told when its
 * body does not fit.
 *
 * @module
 */
import { Type } from 'typebox'

/** What a client is told of a field that does not fit. */
const TAKES = {
  stream_id: 'must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and not start with a dot',
  webhook_urls:
    'must be at most 16 http or https URLs of at most 2048 characters, without user name and password',
  encryption: 'must be true or false',
  revoke: 'must be true or false',
  issued_at: 'must be a number of seconds since 1970',
}

/** Safe in a URL path and a file name, and short enough for its stream key to fit a StreamID of SRT. */
export const StreamId = Type.String({
  pattern: '^(?!\\.)[A-Za-z0-9._~-]{1,128}$',
  description: TAKES.stream_id,
})

export const WebhookUrls = Type.Array(Type.Refine(Type.String({ maxLength: 2048 }), isWebhookUrl), {
  maxItems: 16,
  description: TAKES.webhook_urls,
})

const IssuedAt = Type.Optional(Type.Number({ minimum: 0, description: TAKES.issued_at }))

export const StartStreamBody = Type.Object({
  stream_id: StreamId,
  issued_at: IssuedAt,
  webhook_urls: Type.Optional(WebhookUrls),
  encryption: Type.Optional(Type.Boolean({ description: TAKES.encryption })),
})

export const StopStreamBody = Type.Object({
  stream_id: StreamId,
  issued_at: IssuedAt,
  revoke: Type.Optional(Type.Boolean({ description: TAKES.revoke })),
})

export const StreamBody = Type.Object({ stream_id: StreamId, issued_at: IssuedAt })

/** For Fastify's `setSchemaErrorFormatter`: names the first field that does not fit and what it takes. */
export function formatBodyError(errors: readonly { readonly instancePath: string }[]): Error {
  const field = errors[0]?.instancePath.split('/')[1]
  const message = isBodyField(field)
    ? `${field} ${TAKES[field]}`
    : 'the request body must be a JSON object with stream_id'
  return new Error(message)
}

function isBodyField(field: string | undefined): field is keyof typeof TAKES {
  return field !== undefined && Object.hasOwn(TAKES, field)
}

/** `fetch` refuses URLs with credentials in them. */
function isWebhookUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}
