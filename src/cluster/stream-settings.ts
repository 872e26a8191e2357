/**
 * Settings of a stream as all nodes share them in the registry: what start-stream and kick gave it.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import { FORMATS } from '../contract/schema.ts'

const MediaSettings = Type.Object({
  formats: Type.Optional(Type.Array(Type.Enum([...FORMATS]))),
  segmentSec: Type.Optional(Type.Number()),
  partMs: Type.Optional(Type.Number()),
  playlistSegments: Type.Optional(Type.Number()),
})

const SharedSettings = Type.Object({
  /** Options for the media: those of the first start, until the stream stops. */
  media: Type.Optional(MediaSettings),
  /** Default: `DEFAULT_WEBHOOK_URLS`. */
  webhookUrls: Type.Optional(Type.Array(Type.String())),
  latencyMs: Type.Optional(Type.Number()),
  allowFrom: Type.Optional(Type.Array(Type.String())),
  playbackToken: Type.Optional(Type.Boolean()),
  /** Which passphrase the stream has. It is derived from `JWT_SECRET`, and never stored. */
  encryption: Type.Optional(Type.Object({ sinceSec: Type.Number(), digest: Type.String() })),
  /** End of the ban of encoders, in milliseconds since 1970. */
  bannedUntilMs: Type.Optional(Type.Number()),
  /** Identifies the latest kick: the owner disconnects the encoder once for each. */
  kick: Type.Optional(Type.String()),
})

export type MediaSettings = Static<typeof MediaSettings>
export type SharedSettings = Static<typeof SharedSettings>

/**
 * @param settings  from the registry
 * @throws {TypeError} for settings that no node has written
 */
export function decodeSettings(settings: unknown): SharedSettings {
  if (Check(SharedSettings, settings)) return settings
  throw new TypeError('the registry has settings of a stream that no node has written')
}
