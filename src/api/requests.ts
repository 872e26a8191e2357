/**
 * Requests of the API: the types of the library, the schemas of bodies, the error messages by field and the fields of
 * the audit log follow from these declarations.
 *
 * @module
 */
import { Type, type TObject, type TSchemaOptions } from 'typebox'
import { Errors } from 'typebox/value'
import { KEY_ID } from '../auth/key-list.ts'
import { KEY_LIFETIME_SEC } from '../auth/stream-key.ts'
import { MAX_STREAM_ID_CHARACTERS, STREAM_ID, STREAM_ID_ALLOWED } from '../auth/stream-id.ts'
import { MillraceError } from '../errors.ts'
import { ENCODER_SOURCES, STREAM_STATES } from './records.ts'
import { flag, requested, STREAM_OPTIONS, type OwnOptions } from './stream-options.ts'
import { onTheWire, snakeCase, wireSchema, type Declared } from './wire-names.ts'

export const MAX_WEBHOOK_URLS = 16
export const MAX_WEBHOOK_URL_LENGTH = 2048
/** A stream id of 512 bytes has 1,536 characters where each is encoded. */
const MAX_SRT_URL_LENGTH = 2048
const MAX_PUSH_URLS = 4
const MAX_BAN_SEC = 86_400
/** Maximum and default number of streams on a page: 100 records take about 5 ms. */
export const MAX_PAGE_STREAMS = 100

/** For each field that may hold a secret: neither records nor the audit log have it. */
const SECRET = { writeOnly: true }

export const StreamId = Type.String({ pattern: STREAM_ID.source, description: STREAM_ID_ALLOWED })

export const WebhookUrls = Type.Array(
  Type.Refine(Type.String({ maxLength: MAX_WEBHOOK_URL_LENGTH }), isWebhookUrl),
  {
    ...SECRET,
    maxItems: MAX_WEBHOOK_URLS,
    description: `must be at most ${MAX_WEBHOOK_URLS} http or https URLs of at most ${MAX_WEBHOOK_URL_LENGTH} characters, without user name and password`,
  },
)

/** Fields of all bodies. The library has no use for the time of a request, and names the stream by an argument. */
const SIGNED = {
  issuedAt: Type.Optional(
    Type.Number({ minimum: 0, description: 'must be a number of seconds since 1970' }),
  ),
}
const OF_STREAM = { streamId: StreamId, ...SIGNED }

export const StartStreamBody = Type.Object({
  ...OF_STREAM,
  /** Replaces the webhook URLs of the stream; a new stream begins with `DEFAULT_WEBHOOK_URLS`. */
  webhookUrls: Type.Optional(WebhookUrls),
  /** Gives the stream a passphrase of its own until it stops. */
  encryption: Type.Optional(flag()),
  /** Seconds for which the new key is valid; default 7,200. */
  keyLifetimeSec: Type.Optional(
    Type.Integer({
      ...KEY_LIFETIME_SEC,
      description: `must be a whole number of seconds from ${KEY_LIFETIME_SEC.minimum} to ${KEY_LIFETIME_SEC.maximum}`,
    }),
  ),
  /** Port of `SRT_STREAM_PORTS` where an encoder of this stream needs no stream key; requires a passphrase or `allow_from`. */
  publishPort: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 65_535,
      description: 'must be a port of SRT_STREAM_PORTS',
    }),
  ),
  /** SRT URL of an encoder that listens: this service calls it, as the main encoder. `''`: it calls no more. A secret. */
  pullUrl: Type.Optional(
    Type.String({
      ...SECRET,
      maxLength: MAX_SRT_URL_LENGTH,
      description: `must be an SRT URL of at most ${MAX_SRT_URL_LENGTH} characters`,
    }),
  ),
  /** SRT URLs of listeners that this service sends the stream to, in place of those before. Secrets. */
  pushUrls: Type.Optional(
    Type.Array(Type.String({ maxLength: MAX_SRT_URL_LENGTH }), {
      ...SECRET,
      maxItems: MAX_PUSH_URLS,
      uniqueItems: true,
      description: `must be at most ${MAX_PUSH_URLS} SRT URLs of at most ${MAX_SRT_URL_LENGTH} characters`,
    }),
  ),
  /** Issues a key for a backup encoder as well. */
  backup: Type.Optional(flag()),
  /** Returns a URL for readers of the transport stream over SRT. */
  play: Type.Optional(flag()),
  ...requested(STREAM_OPTIONS),
})

/**
 * The options by their tables, whose comments editors show.
 *
 * @interface
 */
export type StartRequest = Pick<
  Declared<typeof StartStreamBody>,
  | 'streamId'
  | 'webhookUrls'
  | 'encryption'
  | 'keyLifetimeSec'
  | 'publishPort'
  | 'pullUrl'
  | 'pushUrls'
  | 'backup'
  | 'play'
> &
  OwnOptions

export const StopStreamBody = Type.Object({
  ...OF_STREAM,
  /** Revokes all stream keys issued so far; otherwise they become valid again when the stream is restarted. */
  revoke: Type.Optional(flag()),
})

/**
 * Options of `Server.stopStream`.
 *
 * @interface
 */
export type StopRequest = Omit<Declared<typeof StopStreamBody>, keyof typeof OF_STREAM>

export const RevokeKeyBody = Type.Object({
  ...OF_STREAM,
  /** Key to refuse from now on: `key_id` in `keys` of the status, listed or not. */
  keyId: Type.String({
    pattern: KEY_ID.source,
    description: 'must be a `key_id` of the status of the stream',
  }),
})

export const StreamBody = Type.Object(OF_STREAM)

export const KickBody = Type.Object({
  ...OF_STREAM,
  /** Seconds for which encoders of the stream are refused, unless it is started anew; default 0. */
  banSec: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: MAX_BAN_SEC,
      description: `must be 0 to ${MAX_BAN_SEC} seconds`,
    }),
  ),
})

/**
 * Options of `Server.kick`.
 *
 * @interface
 */
export type KickRequest = Omit<Declared<typeof KickBody>, keyof typeof OF_STREAM>

export const SwitchSourceBody = Type.Object({
  ...OF_STREAM,
  /** Encoder that goes on air at its next key frame, and to which the stream fails back from now on. */
  source: Type.Enum([...ENCODER_SOURCES], { description: 'must be main or backup' }),
})

const time = () =>
  Type.Refine(
    Type.String({ maxLength: 40, description: 'must be a time in ISO 8601, 2026-01-31T12:00:00Z' }),
    (text) => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)),
  )

export const ClipBody = Type.Object({
  ...OF_STREAM,
  /** Start of the clip, by the dates of the playlists; whole segments are taken. */
  from: time(),
  /** End of the clip. */
  to: time(),
  /** `archive.run` of its record; default: the run of the stream that this node serves. */
  run: Type.Optional(
    Type.String({
      pattern: '^\\d{8}T\\d{6}Z-[a-z0-9]{1,32}(-\\d{1,4})?$',
      description: 'must be the run of a stream, as its status and webhooks name it',
    }),
  ),
})

/** Times between which a clip is made of an archive. */
export interface ClipRequest {
  readonly from: Date
  readonly to: Date
  readonly run?: string | undefined
}

export const StreamsBody = Type.Object({
  ...SIGNED,
  /** Only streams in this state. */
  status: Type.Optional(
    Type.Enum([...STREAM_STATES], {
      description: 'must be READY, STREAMING, INTERRUPTED or STOPPED',
    }),
  ),
  /** Maximum number of streams; default 100, which is also the limit. */
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_STREAMS,
      description: `must be a whole number from 1 to ${MAX_PAGE_STREAMS}`,
    }),
  ),
  /** `next` of the previous page; default: the first page. */
  after: Type.Optional(
    Type.String({
      maxLength: MAX_STREAM_ID_CHARACTERS,
      description: 'must be the `next` of the previous page',
    }),
  ),
})

/**
 * Filter and position of a page of streams.
 *
 * @interface
 */
export type ListRequest = Omit<Declared<typeof StreamsBody>, 'issuedAt'>

export const NodesBody = Type.Object(SIGNED)

/** Formats the error of the first invalid field of a body, with its allowed values. */
export function formatBodyError(
  { properties, required }: TObject,
  [error]: readonly { readonly instancePath: string; readonly keyword: string }[],
): Error {
  const field = error?.instancePath.split('/')[1]
  if (field !== undefined && Object.hasOwn(properties, field)) {
    return new Error(`${field} ${(properties[field] as TSchemaOptions).description}`)
  }
  const fields = error?.keyword === 'required' ? ` with ${required.join(', ')}` : ''
  return new Error(`the request body must be a JSON object${fields}`)
}

const startStreamSchema = wireSchema(StartStreamBody)
/** Names that differ in the API, with those of the library. */
const startStreamNames = new Map(
  Object.keys(StartStreamBody.properties)
    .map((name) => [snakeCase(name), name] as const)
    .filter(([wireName, name]) => wireName !== name),
)

/**
 * Checks the arguments of `startStream` in the library against the schema that checks HTTP requests.
 *
 * @throws {MillraceError} `BODY_INVALID` with the message of the HTTP response
 */
export function checkStartRequest(request: StartRequest): void {
  const wireName = Object.keys(Object(request)).find((name) => startStreamNames.has(name))
  if (wireName !== undefined) {
    const message = `${wireName} is a name of the API: expected ${startStreamNames.get(wireName)}`
    throw new MillraceError('BODY_INVALID', { message })
  }
  const errors = Errors(startStreamSchema, onTheWire(request))
  if (errors.length === 0) return
  throw new MillraceError('BODY_INVALID', {
    message: formatBodyError(startStreamSchema, errors).message,
  })
}

/** Whether the text is a webhook URL without credentials. */
function isWebhookUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}
