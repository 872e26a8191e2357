/**
 * Log lines and webhooks for events of streams. A webhook is sent to each URL of its stream.
 *
 * @module
 */
import type { MillraceError } from '../errors.ts'
import type { StreamTotals } from '../contract/report.ts'
import type { StopReason } from '../contract/state.ts'
import type { PlaybackUrls } from '../contract/streams.ts'
import { onTheWire } from '../contract/wire-names.ts'
import type { Logger } from '../logger.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { IssuedKey } from './issued-key.ts'
import type { ViewerFigures } from './viewers/viewers.ts'
import type { WebhookDispatcher } from '../webhook/dispatcher.ts'
import type { WebhookEvent, WebhookType } from '../webhook/event.ts'

/** Data of `service.started`; tells an application whether its streams were lost or may be resumed. */
export interface ServiceFacts {
  readonly publicUrl: string
  /** URL of the SRT listener, without a stream key. */
  readonly srtUrl: string
  readonly resumeStreams: boolean
}

/** Who learns of an event. */
export type Addressee = Pick<LiveStream, 'id' | 'status' | 'webhookUrls'>

export interface Notifier {
  /** Subscribes to the events of a stream. */
  follow(stream: LiveStream): void
  /** Announces a new stream key. */
  ready(stream: Addressee, key: IssuedKey): void
  /** Announces a stream that was resumed by a key issued before this process started. */
  resumed(stream: LiveStream): void
  /** Announces another number of viewers. */
  viewers(stream: LiveStream, figures: ViewerFigures): void
  /** Announces the start of the service. */
  serviceStarted(urls: readonly string[], facts: ServiceFacts): void
  /**
   * @param remote  `address:port`
   * @param stream  stream that the encoder's key names; undefined if there is none
   */
  rejected(remote: string, error: MillraceError, stream: LiveStream | undefined): void
}

export interface NotifierOptions {
  readonly urlsOf: (stream: LiveStream) => PlaybackUrls
  /**
   * Announces the end of a stream that this node of a cluster owns; false: it does not. Default: there is no cluster.
   */
  readonly announceEnd?:
    ((stream: LiveStream, reason: StopReason, event: WebhookEvent) => boolean) | undefined
}

/** @param logger  rate-limited: rejected encoders call again, some without a pause */
export function createNotifier(
  logger: Logger,
  webhooks: WebhookDispatcher,
  { urlsOf, announceEnd }: NotifierOptions,
): Notifier {
  // A child logger for each stream, since log lines are rate-limited per child.
  const logOf = ({ id }: Addressee) => logger.child({ stream_id: id })
  const send = (
    stream: Addressee,
    type: WebhookType,
    data: object,
    limit: { readonly rateLimitKey?: string } = {},
  ) => {
    const { id: streamId, status, webhookUrls } = stream
    webhooks.send(webhookUrls, { type, streamId, status, data, ...limit })
  }

  return {
    follow(stream) {
      const log = logOf(stream)
      log.info('stream started')
      stream.on('publish', (encoder) => {
        const { remote } = encoder.report()
        log.info({ remote }, 'encoder connected')
      })
      stream.on('live', () => {
        const { tracks } = stream.report()
        log.info({ tracks: tracks.map((track) => track.codecString ?? track.codec) }, 'stream live')
        send(stream, 'stream.live', {
          ...onTheWire(urlsOf(stream)),
          tracks: onTheWire(tracks),
        })
      })
      stream.on('interrupted', ({ reason }) => {
        log.info({ reason }, 'encoder disconnected')
        send(stream, 'stream.interrupted', { reason, totals: onTheWire(stream.report().totals) })
      })
      stream.on('warning', ({ code, message }) => {
        // A lack of memory affects many streams at once; CacheReport writes one line for all of them.
        log[code === 'CACHE_TOO_SMALL' ? 'debug' : 'warn']({ code }, message)
        send(stream, 'stream.warning', { code, message }, { rateLimitKey: code })
      })
      stream.on('end', ({ reason }) => {
        const event = endEvent(stream, reason, stream.report().totals)
        log.info(event.data, 'stream stopped')
        if (announceEnd?.(stream, reason, event) !== true) webhooks.send(stream.webhookUrls, event)
      })
    },

    ready(stream, { srtUrl, streamKey, passphrase, expiresAt }) {
      logOf(stream).info({ expires_at: expiresAt }, 'stream key issued')
      send(stream, 'stream.ready', {
        srt_url: srtUrl,
        stream_key: streamKey,
        ...(passphrase !== undefined && { passphrase }),
        expires_at: expiresAt.toISOString(),
      })
    },

    resumed(stream) {
      logOf(stream).info('stream resumed')
      send(stream, 'stream.resumed', onTheWire(urlsOf(stream)))
    },

    viewers(stream, figures) {
      send(stream, 'stream.viewers', onTheWire(figures))
    },

    serviceStarted(urls, facts) {
      webhooks.send(urls, { type: 'service.started', data: onTheWire(facts) })
    },

    rejected(remote, error, stream) {
      const reason = error.message
      const { code, rejectCode } = error
      const log = stream === undefined ? logger : logOf(stream)
      log.warn({ remote, code, srt_reject: rejectCode }, `encoder rejected: ${reason}`)
      if (stream === undefined) return
      send(stream, 'stream.rejected', { remote, reason }, { rateLimitKey: 'stream.rejected' })
    },
  }
}

/** Event of the end of a stream. */
export function endEvent(
  { id: streamId, status }: Pick<Addressee, 'id' | 'status'>,
  reason: StopReason,
  totals: StreamTotals,
): WebhookEvent {
  const data = { reason, totals: onTheWire(totals) }
  return { type: 'stream.stopped', streamId, status, data }
}
