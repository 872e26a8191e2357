/**
 * Number of replies that the kernel has not accepted, for a server that closes when there are none.
 *
 * @module
 */
export class OpenReplies {
  #count = 0
  #onNone: (() => void) | undefined

  add(count: number): void {
    this.#count += count
    if (this.#count === 0) this.#onNone?.()
  }

  /** Resolves when there are none. */
  async none(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => (this.#onNone = resolve))
  }
}
