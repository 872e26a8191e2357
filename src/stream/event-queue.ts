/**
 * Queue of events of a stream. Listeners are called after the command that caused the events, in order, so that a
 * listener may call the stream, and one that throws leaves its state consistent.
 *
 * @module
 */
export class EventQueue {
  readonly #events: (() => void)[] = []
  /** Whether a command runs, or listeners of its events do. */
  #active = false

  /** @param emit  calls the listeners of the event */
  push(emit: () => void): void {
    this.#events.push(emit)
  }

  /**
   * Runs a command, then emits its events. The events of a nested command, or of a command called by a listener, follow
   * those already queued.
   *
   * @throws the error of a listener; the remaining events are emitted after the next command
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
    for (let emit = this.#events.shift(); emit !== undefined; emit = this.#events.shift()) emit()
  }
}
