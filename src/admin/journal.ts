/**
 * What happened to each stream, and to its webhooks, for the dashboard: in memory, the newest of each stream.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../timing/clock.ts'
import type { StreamEvent, StreamEventType, WebhookDelivery } from '../web/dashboard/wire.ts'

/** Maximum number of events and of deliveries of a stream, of 100 to 400 bytes each. */
const MAX_OF_STREAM = 50

/** Maximum number of streams, and of events and of deliveries of all: the streams that changed last keep theirs. */
const MAX_STREAMS = 2000
const MAX_IN_TOTAL = 20_000

/** An attempt to deliver a webhook, or its end without one. */
interface DeliveryAttempt {
  /** Receiver; may contain credentials. */
  readonly url: string
  readonly event: { readonly id: string; readonly type: string }
  /** Number of attempts so far. */
  readonly attempts: number
  readonly outcome: WebhookDelivery['outcome']
  /** Status of the response; undefined without one. */
  readonly status?: number | undefined
  /** Why it was not delivered; contains nothing of the URL or of a body. */
  readonly failure?: string | undefined
}

interface Delivery extends WebhookDelivery {
  readonly key: string
}

/** Inputs: `note` and `noteDelivery`, and `retain` now and then. */
export class Journal {
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #events = createLists<StreamEvent>()
  readonly #deliveries = createLists<Delivery>()

  constructor(clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock
  }

  /**
   * Adds an event. One like the latest of the stream takes its place: encoders that are refused call again and again.
   *
   * @param detail  nothing secret
   */
  note(streamId: string, type: StreamEventType, detail = ''): void {
    const [latest, ...earlier] = this.#events.peek(streamId) ?? []
    const isRepeated = latest?.type === type && latest.detail === detail
    const times = isRepeated ? (latest.times ?? 1) + 1 : 1
    const event = { timeMs: this.#clock.wallMs(), type, detail, ...(times > 1 && { times }) }
    const before = isRepeated || latest === undefined ? earlier : [latest, ...earlier]
    this.#events.set(streamId, [event, ...before].slice(0, MAX_OF_STREAM))
  }

  noteDelivery(streamId: string, attempt: DeliveryAttempt): void {
    const { url, event, attempts, outcome, status, failure } = attempt
    const receiver = originOf(url)
    // A number of viewers replaces the one before.
    const key = `${event.type === 'stream.viewers' ? event.type : event.id} ${url}`
    const others = (this.#deliveries.peek(streamId) ?? []).filter((each) => each.key !== key)
    const delivery: Delivery = {
      key,
      timeMs: this.#clock.wallMs(),
      type: event.type,
      receiver,
      outcome,
      attempts,
      ...(status !== undefined && { status }),
      ...(failure !== undefined && { failure }),
    }
    this.#deliveries.set(streamId, [delivery, ...others].slice(0, MAX_OF_STREAM))
    const isFirstFailure = outcome !== 'delivered' && attempts <= 1
    if (!isFirstFailure) return
    this.note(streamId, 'webhook-failed', `${event.type} to ${receiver}: ${failure}`)
  }

  /** Forgets the streams that are not known any more. */
  retain(isKnown: (streamId: string) => boolean): void {
    for (const lists of [this.#events, this.#deliveries]) {
      for (const id of lists.keys()) if (!isKnown(id)) lists.delete(id)
    }
  }

  /** Events and deliveries, newest first. */
  read(streamId: string): { events: readonly StreamEvent[]; webhooks: readonly WebhookDelivery[] } {
    const deliveries = this.#deliveries.peek(streamId) ?? []
    return {
      events: this.#events.peek(streamId) ?? [],
      webhooks: deliveries.map((each) => {
        const { key: _, ...delivery } = each
        return delivery
      }),
    }
  }
}

/** Lists by stream, newest first. */
function createLists<Item>() {
  return new LRUCache<string, readonly Item[]>({
    max: MAX_STREAMS,
    maxSize: MAX_IN_TOTAL,
    sizeCalculation: ({ length }) => length,
  })
}

/** Path and query of a webhook URL are often secret. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'not a URL'
}
