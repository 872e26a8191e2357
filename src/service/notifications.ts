/**
 * Log lines and webhooks for events of streams. A webhook is sent to each URL of its stream.
 *
 * @module
 */
import type { ArchiveEvent } from '../archive/archive.ts'
import type { Journal } from '../admin/journal.ts'
import type { MillraceError } from '../errors.ts'
import type { StartedStream, StreamTotals, StopReason, PlaybackUrls } from '../api/records.ts'
import { onTheWire } from '../api/wire-names.ts'
import type { Logger } from '../logger.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { ViewerFigures } from './viewers/viewers.ts'
import type { WebhookDispatcher } from '../webhook/dispatcher.ts'
import type { WebhookEvent, WebhookType } from '../webhook/event.ts'

/** Data of `service.started`; tells an application whether its streams were lost or may be resumed. */
interface ServiceFacts {
  readonly publicUrl: string
  /** URL of the SRT listener, without a stream key. */
  readonly srtUrl: string
  readonly resumeStreams: boolean
}

/** Credentials of the encoders of a stream. */
export type IssuedKey = Omit<StartedStream, 'streamId' | 'status' | 'watchUrl' | keyof PlaybackUrls>

/** Announces the end of a stream in another way. @returns false if it does not */
export type AnnounceEnd = (stream: LiveStream, reason: StopReason, event: WebhookEvent) => boolean

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
  /** Announces what becomes of the archive of a stream. */
  archive(stream: LiveStream, event: ArchiveEvent): void
  /** Announces the start of the service. */
  serviceStarted(urls: readonly string[], facts: ServiceFacts): void
  /**
   * @param remote  `address:port`
   * @param stream  stream that the encoder's key names; undefined if there is none
   */
  rejected(remote: string, error: MillraceError, stream: LiveStream | undefined): void
  /** A reader over SRT was rejected. */
  readerRejected(remote: string, error: MillraceError, stream: LiveStream | undefined): void
  /** A reader over SRT has connected, or disconnected. */
  reader(stream: LiveStream, remote: string, event: 'connected' | 'left'): void
}

interface NotifierOptions {
  readonly urlsOf: (stream: LiveStream) => PlaybackUrls
  /** Default: ends are announced as all else is. */
  readonly announceEnd?: AnnounceEnd
  /** Default: there is no time line. */
  readonly journal?: Pick<Journal, 'note'> | undefined
}

/** @param logger  rate-limited: rejected encoders call again, some without a pause */
export function createNotifier(
  logger: Logger,
  webhooks: WebhookDispatcher,
  { urlsOf, announceEnd, journal }: NotifierOptions,
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

  const logReject = (
    who: 'encoder' | 'reader',
    remote: string,
    { code, rejectCode, message }: MillraceError,
    stream: LiveStream | undefined,
  ) => {
    const log = stream === undefined ? logger : logOf(stream)
    log.warn({ remote, code, srt_reject: rejectCode }, `${who} rejected: ${message}`)
  }

  return {
    follow(stream) {
      const log = logOf(stream)
      log.info('stream started')
      journal?.note(stream.id, 'started')
      stream.on('publish', (encoder) => {
        const { remote } = encoder.report()
        const { source = 'main' } = encoder
        log.info({ remote, source }, 'encoder connected')
        journal?.note(stream.id, 'connected', source === 'main' ? remote : `${remote} (${source})`)
      })
      stream.on('standby-lost', ({ source, reason }) => {
        log.info({ source, reason }, 'encoder disconnected')
        journal?.note(stream.id, 'standby-lost', `${source}: ${reason}`)
      })
      stream.on('source', ({ from, to, reason }) => {
        log.info({ from, to, reason }, 'source changed')
        journal?.note(stream.id, 'source', `${from} to ${to}: ${reason}`)
        send(stream, 'stream.source_changed', { from, to, reason })
      })
      stream.on('live', () => {
        const { tracks } = stream.report()
        log.info({ tracks: tracks.map((track) => track.codecString ?? track.codec) }, 'stream live')
        journal?.note(stream.id, 'live')
        send(stream, 'stream.live', {
          ...onTheWire(urlsOf(stream)),
          tracks: onTheWire(tracks),
        })
      })
      stream.on('interrupted', ({ reason }) => {
        log.info({ reason }, 'stream interrupted')
        journal?.note(stream.id, 'lost', reason)
        send(stream, 'stream.interrupted', { reason, totals: onTheWire(stream.report().totals) })
      })
      stream.on('key-expiring', ({ source, expiresAt }) => {
        log.warn({ expires_at: expiresAt }, 'stream key of the encoder expires')
        send(stream, 'stream.key_expiring', { source, expires_at: expiresAt.toISOString() })
      })
      stream.on('warning', ({ code, message }) => {
        if (code === 'KEY_EXPIRING') return
        // A lack of memory affects many streams at once; CacheReport writes one line for all of them.
        log[code === 'CACHE_TOO_SMALL' ? 'debug' : 'warn']({ code }, message)
        journal?.note(stream.id, 'warning', `${code}: ${message}`)
        send(stream, 'stream.warning', { code, message }, { rateLimitKey: code })
      })
      stream.on('push', ({ remote, lost: reason }) => {
        const event = reason === undefined ? 'connected' : 'lost'
        log.info({ remote, reason }, `push ${event}`)
        journal?.note(stream.id, `push-${event}`, remote)
        // stream.push_connected, stream.push_lost
        send(stream, `stream.push_${event}`, { remote, reason })
      })
      stream.on('end', ({ reason }) => {
        const event = endEvent(stream, reason, stream.report().totals)
        log.info(event.data, 'stream stopped')
        journal?.note(stream.id, 'stopped', reason)
        if (announceEnd?.(stream, reason, event) !== true) webhooks.send(stream.webhookUrls, event)
      })
    },

    ready(stream, key) {
      logOf(stream).info({ expires_at: key.expiresAt }, 'stream key issued')
      journal?.note(stream.id, 'key')
      send(stream, 'stream.ready', onTheWire(key))
    },

    resumed(stream) {
      logOf(stream).info('stream resumed')
      journal?.note(stream.id, 'resumed')
      send(stream, 'stream.resumed', onTheWire(urlsOf(stream)))
    },

    viewers(stream, figures) {
      send(stream, 'stream.viewers', onTheWire(figures))
    },

    archive(stream, { type, ...data }) {
      const log = logOf(stream)
      if (type === 'failed') log.warn(data, 'the archive lacks media')
      else log.info(data, `archive ${type}`)
      journal?.note(stream.id, `archive-${type}`, 'reason' in data ? data.reason : data.url)
      // archive.started, archive.completed, archive.failed
      send(stream, `archive.${type}`, onTheWire(data))
    },

    serviceStarted(urls, facts) {
      webhooks.send(urls, { type: 'service.started', data: onTheWire(facts) })
    },

    rejected(remote, error, stream) {
      const reason = error.message
      logReject('encoder', remote, error, stream)
      if (stream === undefined) return
      journal?.note(stream.id, 'rejected', reason)
      send(stream, 'stream.rejected', { remote, reason }, { rateLimitKey: 'stream.rejected' })
    },

    readerRejected(...rejected) {
      logReject('reader', ...rejected)
    },

    reader(stream, remote, event) {
      logOf(stream).info({ remote, readers: stream.readers }, `reader ${event}`)
      journal?.note(stream.id, `reader-${event}`, remote)
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
