/**
 * Events that outlive the process where they happened.
 *
 * @module
 */
import type { QueuedEvent } from './url-queues.ts'

/** An event and all its URLs. */
export interface AddressedEvent extends QueuedEvent {
  readonly urls: readonly string[]
}

/** Keeps events for other processes, which deliver them if this one ends before. */
export interface EventOutbox {
  keep(event: AddressedEvent): void
  /** Notes that an event was delivered to a URL, or dropped. */
  settle(eventId: string, url: string): void
}
