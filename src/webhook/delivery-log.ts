/**
 * Log lines about failed attempts and dropped webhooks. Field `failure` has the reason.
 *
 * @module
 */
import type { Logger } from '../logger.ts'
import type { QueuedEvent } from './event.ts'

interface FailedDelivery {
  readonly url: string
  readonly event: QueuedEvent
  /** Error code, response status or other reason; contains nothing of the URL or of a body. */
  readonly failure: string
}

export class DeliveryLog {
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** @param delivery.isFirst  whether the event has not failed before; repetitions are logged as `debug` */
  logRetry({ isFirst, ...delivery }: FailedDelivery & { readonly isFirst: boolean }): void {
    this.#logger[isFirst ? 'warn' : 'debug'](
      fieldsOf(delivery),
      'Webhook failed, is retried for 10 minutes. Its receiver gets it late. Check the receiver (see failure).',
    )
  }

  logDrop(delivery: FailedDelivery): void {
    this.#logger.warn(
      fieldsOf(delivery),
      'Webhook dropped. Its receiver misses it. Check the receiver and WEBHOOK_ALLOW (see failure).',
    )
  }

  logDropsAtClose(dropped: number): void {
    this.#logger.warn(
      { dropped },
      `Webhooks dropped at shutdown: ${dropped}. Receivers miss them. Query GET /api/status after the restart.`,
    )
  }
}

function fieldsOf({ url, event: { type, streamId }, failure }: FailedDelivery) {
  // Path and query of a webhook URL are often secret.
  const webhook = URL.canParse(url) ? new URL(url).origin : 'not a URL'
  return { webhook, type, stream_id: streamId, failure }
}
