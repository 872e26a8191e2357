/**
 * Handshakes with good cookies: the callers receive what the service answers.
 *
 * @module
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  encodeHsExtension,
  encodeStreamIdExtension,
  ExtensionType,
  LIVE_FLAGS,
} from '../../../src/srt/wire/extension.ts'
import {
  decodeHandshake,
  encodeHandshake,
  ExtensionFlag,
  HANDSHAKE_VERSION,
  HandshakeType,
} from '../../../src/srt/wire/handshake.ts'
import { ControlType, controlType, isControl } from '../../../src/srt/wire/packet.ts'
import { encodeInduction } from '../../support/induction.ts'
import type { Target } from '../target.ts'

const INDUCTION_RETRY_MS = 250
const INDUCTION_TRIES = 40

/** Cookies of each intruder, by socket id from 1 on. */
const COOKIES = 64
/** Interval of bursts of what became due: an attack is a rate, and has no condition to wait for. */
const BURST_MS = 10
/** Limits catching up after a delay: a burst that overflows the kernel's buffer says nothing about the service. */
const MAX_BURST_SEC = 0.05

const HSREQ = encodeHsExtension(ExtensionType.HSREQ, {
  srtVersion: 0x010501,
  flags: LIVE_FLAGS,
  receiverDelayMs: 120,
  senderDelayMs: 0,
})

/** A caller on one loopback address that sends any number of conclusions. */
class Intruder {
  readonly #socket: Socket
  readonly #cookies = new Map<number, number>()
  readonly #address: string
  #initialSequenceNumber = 0
  /** Number of answers by handshake type, which is the reject code from 1000 on. */
  readonly answers: Record<number, number> = {}

  private constructor(socket: Socket, address: string) {
    this.#socket = socket
    this.#address = address
    socket.on('error', () => undefined)
    socket.on('message', (datagram) => this.#handleAnswer(datagram))
  }

  /** @param address  loopback address in 127.0.0.0/8; each /24 is a source network of its own */
  static async open(address: string, { host, srtPort }: Target): Promise<Intruder> {
    const socket = createSocket('udp4')
    socket.bind(0, address)
    await once(socket, 'listening')
    socket.connect(srtPort, host)
    await once(socket, 'connect')
    return new Intruder(socket, address)
  }

  /** @throws {Error} if the service issues no cookie for this socket id */
  async induce(socketId: number): Promise<void> {
    for (let tries = 0; tries < INDUCTION_TRIES && !this.#cookies.has(socketId); tries++) {
      this.#socket.send(encodeInduction(socketId, this.#address))
      await Promise.race([once(this.#socket, 'message'), sleep(INDUCTION_RETRY_MS)])
    }
    if (!this.#cookies.has(socketId)) throw new Error(`no cookie for ${this.#address}`)
  }

  /** Sends a conclusion with the cookie of that socket id, as a new attempt. */
  conclude(socketId: number, streamId: string, group?: Buffer): void {
    this.#socket.send(
      encodeHandshake(
        {
          version: HANDSHAKE_VERSION,
          encryptionField: 0,
          extensionField: ExtensionFlag.HSREQ | ExtensionFlag.CONFIG,
          initialSequenceNumber: this.#initialSequenceNumber++,
          mtuBytes: 1500,
          flowWindowPackets: 8192,
          type: HandshakeType.CONCLUSION,
          socketId,
          cookie: this.#cookies.get(socketId) ?? 0,
        },
        {
          socketId: 0,
          timestampUs: 0,
          peerAddress: this.#address,
          blocks: [HSREQ, encodeStreamIdExtension(streamId), ...(group ? [group] : [])],
        },
      ),
    )
  }

  close(): void {
    this.#socket.close()
  }

  #handleAnswer(datagram: Buffer): void {
    const isHandshake = isControl(datagram) && controlType(datagram) === ControlType.HANDSHAKE
    const handshake = isHandshake ? decodeHandshake(datagram) : undefined
    if (handshake === undefined) return
    const { type, cookie, socketId } = handshake
    if (type === HandshakeType.INDUCTION) this.#cookies.set(socketId, cookie)
    else this.answers[type] = (this.answers[type] ?? 0) + 1
  }
}

export interface Flood {
  /** Number of /24 networks, with one address each. */
  readonly networks: number
  /** Conclusions per second of all networks together. */
  readonly perSec: number
  /** Total number of conclusions. */
  readonly conclusions: number
  /** Second byte of the addresses, 127.x.n.1. */
  readonly subnet: number
  /** StreamID of each conclusion. */
  readonly streamId: () => string
  /** GROUP block of each conclusion; default: none. */
  readonly group?: () => Buffer
  /** Called before each burst of 10 ms with the number of conclusions sent so far. */
  readonly onBurst?: (sent: number) => void
}

/** @returns number of conclusions sent, and number of answers by handshake type */
export async function flood(
  target: Target,
  signal: AbortSignal,
  { networks, perSec, conclusions, subnet, streamId, group, onBurst }: Flood,
): Promise<{ sent: number; answers: Record<number, number> }> {
  const intruders = await Promise.all(
    Array.from({ length: networks }, (_, n) => Intruder.open(`127.${subnet}.${n + 1}.1`, target)),
  )
  let sent = 0
  try {
    for (const intruder of intruders) {
      for (let socketId = 1; socketId <= COOKIES; socketId++) await intruder.induce(socketId)
    }
    const startMs = performance.now()
    while (sent < conclusions && !signal.aborted) {
      onBurst?.(sent)
      const scheduled = ((performance.now() - startMs) / 1000) * perSec
      const due = Math.min(scheduled, sent + perSec * MAX_BURST_SEC, conclusions)
      while (sent < due) {
        intruders[sent % networks]!.conclude(1 + (sent % COOKIES), streamId(), group?.())
        sent++
      }
      await sleep(BURST_MS)
    }
  } finally {
    for (const intruder of intruders) intruder.close()
  }
  const answers: Record<number, number> = {}
  for (const intruder of intruders) {
    for (const [type, count] of Object.entries(intruder.answers)) {
      answers[Number(type)] = (answers[Number(type)] ?? 0) + count
    }
  }
  return { sent, answers }
}
