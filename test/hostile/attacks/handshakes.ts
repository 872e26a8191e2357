/**
 * Handshakes of callers that receive what is sent to them, and so have good cookies.
 *
 * @module
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
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
  UDT_DATAGRAM,
} from '../../../src/srt/wire/handshake.ts'
import type { Target } from '../target.ts'

const INDUCTION_RETRY_MS = 250
const INDUCTION_TRIES = 40

const HSREQ = encodeHsExtension(ExtensionType.HSREQ, {
  srtVersion: 0x010501,
  flags: LIVE_FLAGS,
  receiverDelayMs: 120,
  senderDelayMs: 0,
})

/** A caller on one address of the loopback that concludes as often as it likes. */
export class Intruder {
  readonly #socket: Socket
  readonly #cookies = new Map<number, number>()
  readonly #address: string
  #initialSequenceNumber = 0
  /** Handshake type of the latest answers -> how many: reject codes, from 1000 on. */
  readonly answers: Record<number, number> = {}

  private constructor(socket: Socket, address: string) {
    this.#socket = socket
    this.#address = address
    socket.on('error', () => undefined)
    socket.on('message', (datagram) => this.#handleAnswer(datagram))
  }

  /** @param address  of 127.0.0.0/8, which is all loopback: each /24 of it is a source network of its own */
  static async open(address: string, { host, srtPort }: Target): Promise<Intruder> {
    const socket = createSocket('udp4')
    socket.bind(0, address)
    await once(socket, 'listening')
    socket.connect(srtPort, host)
    await once(socket, 'connect')
    return new Intruder(socket, address)
  }

  /** @returns whether the service gave a cookie to this socket id */
  async induce(socketId: number): Promise<boolean> {
    for (let tries = 0; tries < INDUCTION_TRIES && !this.#cookies.has(socketId); tries++) {
      this.#socket.send(
        encodeHandshake(
          {
            version: 4,
            encryptionField: 0,
            extensionField: UDT_DATAGRAM,
            initialSequenceNumber: 0,
            mtuBytes: 1500,
            flowWindowPackets: 8192,
            type: HandshakeType.INDUCTION,
            socketId,
            cookie: 0,
          },
          { socketId: 0, timestampUs: 0, peerAddress: this.#address, blocks: [] },
        ),
      )
      await Promise.race([once(this.#socket, 'message'), pause(INDUCTION_RETRY_MS)])
    }
    return this.#cookies.has(socketId)
  }

  /** Sends a conclusion with the cookie of that socket id; each is an attempt of its own. */
  conclude(socketId: number, streamId: string): void {
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
          blocks: [HSREQ, encodeStreamIdExtension(streamId)],
        },
      ),
    )
  }

  close(): void {
    this.#socket.close()
  }

  #handleAnswer(datagram: Buffer): void {
    const handshake = decodeHandshake(datagram)
    if (handshake === undefined) return
    const { type, cookie, socketId } = handshake
    if (type === HandshakeType.INDUCTION) this.#cookies.set(socketId, cookie)
    else this.answers[type] = (this.answers[type] ?? 0) + 1
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
