/**
 * Commands that print signatures and secrets.
 *
 * @module
 */
import { text } from 'node:stream/consumers'
import { signPlaybackToken } from '../auth/playback-token.ts'
import { sign } from '../auth/signature.ts'
import { formatWebhookSecret, webhookKeys } from '../auth/standard-webhooks.ts'
import { machineClock } from '../timing/clock.ts'
import { flagWarnings, type Flags } from '../config/environment.ts'
import { parseSecrets } from '../config/setting-types.ts'
import { MillraceError } from '../errors.ts'
import { givenHmacSecret, givenSettings, print, readConfig, report } from './terminal.ts'

/** @param body  default: read from standard input */
export async function printSignature(body: string | undefined, flags: Flags): Promise<void> {
  const secret = givenHmacSecret(flags)
  print(sign(Buffer.from(body ?? (await text(process.stdin))), secret))
}

interface PlaybackUrlOptions {
  /** Lifetime of the token, in seconds. */
  readonly ttl: number
  readonly address?: string
}

export function printPlaybackUrl(
  streamId: string,
  { ttl, address }: PlaybackUrlOptions,
  flags: Flags,
): void {
  flagWarnings(flags).forEach(report)
  const { playbackSecret = '', public: base } = givenSettings(flags)
  if (playbackSecret === '') {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'PLAYBACK_SECRET is not set: expected the secret that signs playback tokens',
    })
  }
  const token = signPlaybackToken({
    streamId,
    secret: parseSecrets(playbackSecret)[0],
    expiresAt: new Date(machineClock.wallMs() + ttl * 1000),
    ...(address !== undefined && { address }),
  })
  print(`${(base?.url ?? '').replace(/\/+$/, '')}/t/${token}/video/${streamId}/master.m3u8`)
}

export function printWebhookSecret(flags: Flags): void {
  const { webhook, hmacSecret } = readConfig(flags)
  const [newest] = webhookKeys(webhook.secret, parseSecrets(hmacSecret))
  print(formatWebhookSecret(newest))
}
