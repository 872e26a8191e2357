/**
 * Queue of events of a stream. Listeners are called in order, after the command that caused the events. So a listener
 * may call the stream, and a listener that throws leaves the stream in a consistent state.
 *
 * @module
 */
export class EventQueue {
  readonly #onError: ((error: unknown) => void) | undefined
  readonly #events: (() => void)[] = []
  /** Whether a command or a listener is running. */
  #active = false

  /** @param onError  gets what a listener throws; default: `run` throws it */
  constructor(onError?: (error: unknown) => void) {
    this.#onError = onError
  }

  /** @param emit  calls the listeners of the event */
  push(emit: () => void): void {
    this.#events.push(emit)
  }

  /**
   * Runs a command, then emits its events. The events of a nested command, or of a command called by a listener, follow
   * those already queued.
   *
   * @throws without `onError` the error of a listener; the remaining events are emitted after the next command
   */
  run<Result>(command: () => Result): Result {
    if (this.#active) return command()
    this.#active = true
    try {
      return command()
    } finally {
      try {
        this.#emitAll()
      } finally {
        this.#active = false
      }
    }
  }

  #emitAll(): void {
    for (let emit = this.#events.shift(); emit !== undefined; emit = this.#events.shift()) {
      try {
        emit()
      } catch (error) {
        if (this.#onError === undefined) throw error
        this.#onError(error)
      }
    }
  }
}
