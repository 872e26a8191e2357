/**
 * Calls of the API for the streams of this process.
 *
 * @module
 */
import { checkStartRequest } from '../contract/schema.ts'
import type {
  KickRequest,
  ListRequest,
  StartedStream,
  StartRequest,
  StopRequest,
  StreamControl,
  StreamPage,
  StreamRecord,
} from '../contract/streams.ts'
import type { WebhookDispatcher } from '../webhook/dispatcher.ts'
import { issuedKey } from './issued-key.ts'
import type { Notifier } from './notifications.ts'
import type { PublicUrls } from './public-urls.ts'
import type { Records } from './records.ts'
import type { Streams } from './streams.ts'

export interface LocalControlOptions {
  readonly streams: Streams
  readonly records: Records
  readonly notifier: Notifier
  readonly webhooks: WebhookDispatcher
  readonly urls: PublicUrls
}

export class LocalControl implements StreamControl {
  readonly #options: LocalControlOptions

  constructor(options: LocalControlOptions) {
    this.#options = options
  }

  async startStream(request: StartRequest): Promise<StartedStream> {
    const { streams, notifier, webhooks, urls } = this.#options
    checkStartRequest(request)
    webhooks.check(request.webhookUrls ?? [])
    const { stream, key } = await streams.start(request)
    const { id: streamId, status, encryption } = stream
    const issued = issuedKey(key, encryption?.passphrase, urls)
    notifier.ready(stream, issued)
    return { streamId, status, ...issued, ...urls.playback(streamId, streams.formatsOf(stream)) }
  }

  async stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord> {
    const { streams, records } = this.#options
    return records.of(streams.stop(streamId, request))
  }

  kick(streamId: string, request?: KickRequest): StreamRecord {
    const { streams, records } = this.#options
    return records.of(streams.kick(streamId, request))
  }

  status(streamId: string): StreamRecord {
    const { streams, records } = this.#options
    return records.of(streams.get(streamId))
  }

  list(request: ListRequest = {}): StreamPage {
    const { streams, records } = this.#options
    return records.page(request, (filter) => streams.list(filter))
  }
}
