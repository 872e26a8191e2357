/**
 * The way of a start-stream call from the request to the response. Where the stream starts, in this process or in a
 * cluster, is up to `StartStreamOptions.start`.
 *
 * @module
 */
import type { StartedStream } from '../api/records.ts'
import { checkStartRequest, type StartRequest } from '../api/requests.ts'
import type { Format } from '../hls/file-names.ts'
import type { WebhookDispatcher } from '../webhook/dispatcher.ts'
import type { Addressee, IssuedKey, Notifier } from './notifications.ts'
import { formatPlayRequest, issuePlayToken } from '../auth/srt-play-token.ts'
import type { IssuedKeys } from '../auth/stream-key.ts'
import type { Slates } from './slates.ts'
import type { SrtCaller } from './srt-caller.ts'
import type { PublicUrls } from './public-urls.ts'

/** A stream that runs, and new keys for it. */
export interface KeyedStream extends IssuedKeys {
  readonly stream: Addressee
  readonly formats: readonly Format[]
  /** The stream's own passphrase, if it has one. */
  readonly passphrase: string | undefined
}

export interface StartStreamOptions {
  /**
   * Issues a new key for a stream, and starts the stream unless it is running.
   *
   * @param request  already checked against the schema
   * @throws {MillraceError} `BODY_INVALID` if the settings do not allow a value, `TOO_MANY_STREAMS`
   */
  readonly start: (request: StartRequest) => Promise<KeyedStream>
  readonly webhooks: Pick<WebhookDispatcher, 'check'>
  readonly urls: Pick<PublicUrls, 'srtWith' | 'publishAt' | 'playback' | 'watch'>
  /** Reads the values of `PLAYBACK_SECRET`; empty: readers need no token. */
  readonly readPlaybackSecrets: () => readonly string[]
  readonly notifier: Pick<Notifier, 'ready'>
  readonly slates: Pick<Slates, 'load'>
  readonly srtCaller: Pick<SrtCaller, 'check'>
}

/** @throws {MillraceError} `BODY_INVALID` for what schema or settings refuse, and see `StartStreamOptions.start` */
export async function startAndAnnounce(
  request: StartRequest,
  { start, webhooks, urls, notifier, slates, srtCaller, readPlaybackSecrets }: StartStreamOptions,
): Promise<StartedStream> {
  checkStartRequest(request)
  webhooks.check(request.webhookUrls ?? [])
  if (request.pullUrl) srtCaller.check('pull_url', request.pullUrl)
  for (const url of request.pushUrls ?? []) srtCaller.check('push_urls', url)
  if (request.slate) await slates.load(request.slate)
  const { stream, formats, key, backupKey, passphrase } = await start(request)
  const srtUrl = urls.srtWith(key.streamKey, passphrase)
  const { publishPort: port } = request
  const play = async (rid: string) => {
    const [secret] = readPlaybackSecrets()
    const token = secret && (await issuePlayToken(rid, { secret, expiresAt: key.expiresAt }))
    return urls.srtWith(formatPlayRequest({ rid, ...(token && { token }) }), passphrase)
  }
  const issued: IssuedKey = {
    srtUrl,
    ...key,
    ...(port !== undefined && { publishUrl: urls.publishAt(port, passphrase) }),
    ...(backupKey !== undefined && {
      backupSrtUrl: urls.srtWith(backupKey.streamKey, passphrase),
      backupStreamKey: backupKey.streamKey,
      backupShortStreamKey: backupKey.shortStreamKey,
    }),
    ...(request.play === true && { playUrl: await play(stream.id) }),
    ...(passphrase !== undefined && { passphrase }),
  }
  notifier.ready(stream, issued)
  const { id: streamId, status } = stream
  const playback = urls.playback(streamId, formats)
  return { streamId, status, ...issued, ...playback, watchUrl: urls.watch(streamId) }
}
