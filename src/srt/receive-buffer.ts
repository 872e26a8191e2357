/**
 * Payloads that arrived ahead of a missing one, in a ring indexed by sequence number. Since 2^31 is a multiple of every
 * ring size, the wrap of the sequence number needs no care.
 *
 * The owner keeps all it stores within one capacity's length of sequence numbers; the buffer itself knows no order.
 *
 * @module
 */

const INITIAL_CAPACITY = 1024

export class ReceiveBuffer {
  #payloads: (Buffer | undefined)[] = []
  #deliveryUs = new Float64Array(0)
  #mask = -1

  /** Makes room for `span` consecutive sequence numbers from `first` on; what is stored stays. */
  reserve(first: number, span: number): void {
    const capacity = this.#payloads.length
    if (span <= capacity) return
    let size = Math.max(capacity, INITIAL_CAPACITY)
    while (size < span) size *= 2
    const payloads = Array.from<Buffer | undefined>({ length: size })
    const deliveryUs = new Float64Array(size)
    for (let i = 0; i < capacity; i++) {
      const from = (first + i) & this.#mask
      const to = (first + i) & (size - 1)
      payloads[to] = this.#payloads[from]
      deliveryUs[to] = this.#deliveryUs[from]!
    }
    this.#payloads = payloads
    this.#deliveryUs = deliveryUs
    this.#mask = size - 1
  }

  has(sequence: number): boolean {
    return this.#payloads[sequence & this.#mask] !== undefined
  }

  put(sequence: number, payload: Buffer, deliveryUs: number): void {
    this.#payloads[sequence & this.#mask] = payload
    this.#deliveryUs[sequence & this.#mask] = deliveryUs
  }

  /** When the stored packet is due. */
  deliveryUs(sequence: number): number {
    return this.#deliveryUs[sequence & this.#mask]!
  }

  /** Hands the payload over and forgets it. */
  take(sequence: number): Buffer | undefined {
    const payload = this.#payloads[sequence & this.#mask]
    this.#payloads[sequence & this.#mask] = undefined
    return payload
  }

  /** Forgets everything, and gives the memory back. */
  clear(): void {
    this.#payloads = []
    this.#deliveryUs = new Float64Array(0)
    this.#mask = -1
  }
}
