/**
 * Ids of groups, which are cookies: a receiver stores nothing for a sender until the sender has proved, by presenting the
 * id, that it receives packets at its address.
 *
 *   | sender's half (128) | MAC (32) | time slot (4) | port (2) | length (1) | address | zeros |
 *
 * An id says for whom it was issued, since the lines of a group have different addresses and any of them may present it
 * first.
 *
 * @module
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { GROUP_ID_BYTES } from './packet.ts'

/** An id founds a group in the time slot of its issue, and in the next one. */
const SLOT_US = 30_000_000

const SECRET_BYTES = 32
const MAC_AT = GROUP_ID_BYTES / 2
const SLOT_AT = MAC_AT + 32
const PORT_AT = SLOT_AT + 4
const LENGTH_AT = PORT_AT + 2
const ADDRESS_AT = LENGTH_AT + 1

/** Address and port of a line. */
export interface RemoteAddress {
  readonly address: string
  readonly port: number
}

export class GroupIds {
  readonly #secret: Buffer

  constructor(random: (bytes: number) => Buffer) {
    this.#secret = random(SECRET_BYTES)
  }

  /** @param request  256 bytes of a REG1, of which the first half becomes that of the id */
  issue(request: Buffer, { address, port }: RemoteAddress, nowUs: number): Buffer {
    const id = Buffer.alloc(GROUP_ID_BYTES)
    request.copy(id, 0, 0, MAC_AT)
    id.writeUInt32BE(slotAt(nowUs), SLOT_AT)
    id.writeUInt16BE(port, PORT_AT)
    id[LENGTH_AT] = id.write(address, ADDRESS_AT, 'latin1')
    id.set(this.#macOf(id), MAC_AT)
    return id
  }

  /** @returns for whom the id was issued; undefined if it was not, or too long ago */
  founderOf(id: Buffer, nowUs: number): RemoteAddress | undefined {
    if (!timingSafeEqual(this.#macOf(id), id.subarray(MAC_AT, SLOT_AT))) return undefined
    if (slotAt(nowUs) - id.readUInt32BE(SLOT_AT) > 1) return undefined
    const address = id.toString('latin1', ADDRESS_AT, ADDRESS_AT + id[LENGTH_AT]!)
    return { address, port: id.readUInt16BE(PORT_AT) }
  }

  #macOf(id: Buffer): Buffer {
    const mac = createHmac('sha256', this.#secret)
    return mac.update(id.subarray(0, MAC_AT)).update(id.subarray(SLOT_AT)).digest()
  }
}

function slotAt(nowUs: number): number {
  return Math.floor(nowUs / SLOT_US) >>> 0
}
