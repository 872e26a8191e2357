/**
 * Events of a stream, told once the command that caused them is done, in the order in which things happened: a listener
 * may command the stream, and one that throws leaves it whole.
 *
 * @module
 */
import type { Warning } from '../contract/report.ts'
import type { StopReason } from '../contract/state.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { Encoder, LeaveReason } from './publication.ts'

/** Events of a stream, in the words of the library. */
export interface StreamEvents {
  /** A segment is complete; its bytes are shared with the cache and not to be changed. */
  segment: [segment: Segment]
  /** An encoder connected. */
  publish: [encoder: Encoder]
  /** The playlist can be played and grows; again after every interruption. */
  live: []
  /** The encoder left, or sends no media; the playlist waits for it. */
  interrupted: [event: { reason: LeaveReason | 'no-media' }]
  /** A condition of the source that an operator should mend; told when it begins. */
  warning: [warning: Warning]
  /** The stream is over. Last event. */
  end: [event: { reason: StopReason }]
}

export class EventQueue {
  readonly #events: (() => void)[] = []
  /** A command is being carried out, or its events are being told. */
  #active = false

  /** @param tell  calls the listeners of the event */
  push(tell: () => void): void {
    this.#events.push(tell)
  }

  /**
   * Carries out a command, then tells what happened. A command within a command, or given by a listener, adds its events
   * behind those that are not told yet.
   *
   * @throws what a listener throws; the events after that are told with the next command
   */
  run<Result>(command: () => Result): Result {
    if (this.#active) return command()
    this.#active = true
    try {
      return command()
    } finally {
      try {
        this.#tell()
      } finally {
        this.#active = false
      }
    }
  }

  #tell(): void {
    for (let tell = this.#events.shift(); tell !== undefined; tell = this.#events.shift()) tell()
  }
}
