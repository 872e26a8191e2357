/**
 * Options of a stream as all nodes share them in the registry: what start-stream and kick gave it.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import { ENCODER_SOURCES } from '../../api/records.ts'
import { MEDIA_OPTIONS, POLICY_OPTIONS, recorded } from '../../api/stream-options.ts'

const RegisteredOptions = Type.Object({
  media: Type.Optional(Type.Object(recorded(MEDIA_OPTIONS))),
  ...recorded(POLICY_OPTIONS),
  /** Port that the stream has to itself; `Registry.start` gives it. */
  publishPort: Type.Optional(Type.Number()),
  /** Default: `DEFAULT_WEBHOOK_URLS`. */
  webhookUrls: Type.Optional(Type.Array(Type.String())),
  /** Which passphrase the stream has. It is derived from `JWT_SECRET`, and never stored. */
  encryption: Type.Optional(Type.Object({ sinceSec: Type.Number(), digest: Type.String() })),
  /** Sealed `pull_url`; empty: there is none any more. */
  pullUrl: Type.Optional(Type.String()),
  /** The same of `push_urls`, sealed as JSON. */
  pushUrls: Type.Optional(Type.String()),
  /** End of the ban of encoders, in milliseconds since 1970. */
  bannedUntilMs: Type.Optional(Type.Number()),
  /** Encoder that the stream fails back to; default: the main one. */
  preferredSource: Type.Optional(Type.Enum([...ENCODER_SOURCES])),
  /** Identifies the latest choice of it: the owner puts the encoder on air once for each. */
  switched: Type.Optional(Type.String()),
  /** Identifies the latest kick: the owner disconnects the encoder once for each. */
  kick: Type.Optional(Type.String()),
})

export type RegisteredOptions = Static<typeof RegisteredOptions>

/**
 * @param options  from the registry
 * @throws {TypeError} for options that no node has written
 */
export function decodeOptions(options: unknown): RegisteredOptions {
  if (Check(RegisteredOptions, options)) return options
  throw new TypeError('the registry has options of a stream that no node has written')
}
