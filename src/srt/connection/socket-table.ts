/**
 * Table of connections by socket id. The low bits of an id are the index of its slot, so a look-up is one array read.
 *
 * Ids are random, from 1 to 2^30 - 1, so an off-path attacker cannot guess them. Bit 30 stays clear: it marks the id of
 * a group (bonding).
 *
 * @module
 */

const INITIAL_CAPACITY = 64

export const MAX_SOCKET_ID = 0x3fffffff

export class SocketTable<Socket> {
  readonly #random: (bytes: number) => Buffer
  #ids = new Int32Array(INITIAL_CAPACITY)
  #sockets: (Socket | undefined)[] = Array.from({ length: INITIAL_CAPACITY })
  #size = 0

  constructor(random: (bytes: number) => Buffer) {
    this.#random = random
  }

  get size(): number {
    return this.#size
  }

  get(id: number): Socket | undefined {
    const slot = id & (this.#ids.length - 1)
    return this.#ids[slot] === id ? this.#sockets[slot] : undefined
  }

  values(): Socket[] {
    return this.#sockets.filter((socket) => socket !== undefined)
  }

  /** @returns a new id, reserved until `delete` */
  allocate(): number {
    // At least half of the slots are free, so a free slot is found within two tries on average.
    if (this.#size * 2 >= this.#ids.length) this.#grow()
    for (;;) {
      const id = this.#random(4).readUInt32BE() & MAX_SOCKET_ID
      const slot = id & (this.#ids.length - 1)
      if (id === 0 || this.#ids[slot] !== 0) continue
      this.#ids[slot] = id
      this.#size++
      return id
    }
  }

  /** @param id  from `allocate` */
  set(id: number, socket: Socket): void {
    this.#sockets[id & (this.#ids.length - 1)] = socket
  }

  delete(id: number): void {
    const slot = id & (this.#ids.length - 1)
    if (id === 0 || this.#ids[slot] !== id) return
    this.#ids[slot] = 0
    this.#sockets[slot] = undefined
    this.#size--
  }

  /** Doubles the number of slots. Ids in different slots stay in different slots: one more bit of each id counts. */
  #grow(): void {
    const ids = this.#ids
    const sockets = this.#sockets
    this.#ids = new Int32Array(ids.length * 2)
    this.#sockets = Array.from({ length: ids.length * 2 })
    ids.forEach((id, slot) => {
      if (id === 0) return
      this.#ids[id & (this.#ids.length - 1)] = id
      this.#sockets[id & (this.#ids.length - 1)] = sockets[slot]
    })
  }
}
