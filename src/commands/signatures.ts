/**
 * Commands that print signatures and secrets.
 *
 * @module
 */
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { signPlaybackToken } from '../auth/playback-token.ts'
import { sign } from '../auth/signature.ts'
import { formatWebhookSecret, webhookKeys } from '../auth/standard-webhooks.ts'
import { machineClock } from '../clock.ts'
import { flagWarnings, parseFlags } from '../config/environment.ts'
import { completeOptions } from '../config/options.ts'
import { parseSecrets } from '../config/setting-types.ts'
import { isStreamId } from '../contract/schema.ts'
import { MillraceError } from '../errors.ts'
import { givenOptions, print, report, requiredOptions } from './terminal.ts'

/** Default lifetime of a playback token. */
const PLAYBACK_TTL_SEC = 4 * 60 * 60

export async function printSignature(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseFlags(args)
  flagWarnings(values).forEach(report)
  const { hmacSecret } = givenOptions(values)
  if (hmacSecret === undefined) {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'HMAC_SECRET is not set: expected the secret that signs the body',
    })
  }
  const [body] = positionals
  print(sign(Buffer.from(body ?? (await text(process.stdin))), parseSecrets(hmacSecret)[0]))
}

export function printPlaybackUrl(args: readonly string[]): void {
  const { values, positionals } = parseFlags(args, {
    ttl: { type: 'string' },
    address: { type: 'string' },
  })
  flagWarnings(values).forEach(report)
  const { ttl = String(PLAYBACK_TTL_SEC), address } = values
  const [streamId = '', ...others] = positionals
  const isForm = isStreamId(streamId) && others.length === 0 && /^[1-9]\d{0,9}$/.test(ttl)
  if (!isForm || (address !== undefined && isIP(address) === 0)) {
    throw new MillraceError('USAGE', {
      message: 'expected: millrace sign-playback STREAM_ID [--ttl SECONDS] [--address IP]',
    })
  }
  const { playbackSecret = '', public: base } = givenOptions(values)
  if (playbackSecret === '') {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'PLAYBACK_SECRET is not set: expected the secret that signs playback tokens',
    })
  }
  const token = signPlaybackToken({
    streamId,
    secret: parseSecrets(playbackSecret)[0],
    expiresAt: new Date(machineClock.wallMs() + Number(ttl) * 1000),
    ...(address !== undefined && { address }),
  })
  print(`${(base?.url ?? '').replace(/\/+$/, '')}/t/${token}/video/${streamId}/master.m3u8`)
}

export function printWebhookSecret(args: readonly string[]): void {
  const { webhook, hmacSecret } = completeOptions(requiredOptions(args))
  const [newest] = webhookKeys(webhook.secret, parseSecrets(hmacSecret))
  print(formatWebhookSecret(newest))
}
