/**
 * Calls an SRT listener and sends to it: a `Call` with a socket, a clock and a timer.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { systemClock, type Clock } from '../../clock.ts'
import { MAX_SEQUENCE_NUMBER } from '../../binary/sequence-number.ts'
import { Call } from '../connection/call.ts'
import { Encryption } from '../crypto/encryption.ts'
import { deriveKey } from '../crypto/key-encryption.ts'
import { MAX_SOCKET_ID } from '../connection/socket-table.ts'
import { openSocket } from './socket.ts'
import { TICK_MS } from '../timers.ts'
import type { CloseReason, SenderStats } from '../types.ts'
import { isKeyBytes, SALT_BYTES, type KeyBytes } from '../wire/key-material.ts'
import { MAX_STREAM_ID_BYTES } from '../wire/limits.ts'
import { MAX_PAYLOAD_BYTES } from '../wire/packet.ts'

export interface ConnectOptions {
  readonly host: string
  readonly port: number
  /** At most `MAX_STREAM_ID_BYTES`. */
  readonly streamId?: string
  /** Latency in milliseconds, in both directions; the listener may ask for more. Default 120. */
  readonly latencyMs?: number
  /** Latency of what is sent, where it differs. */
  readonly peerLatencyMs?: number
  /** Of the first packet; random by default. */
  readonly initialSequenceNumber?: number
  /** Where the 32-bit timestamps begin; default 0. */
  readonly startTimestampUs?: number
  /** Packets kept until the listener has them; default 8192. */
  readonly sendBufferPackets?: number
  /** Bits a second that bursts and retransmissions may take; by default a gigabit. */
  readonly maxBandwidthBps?: number
  /** Encrypts what is sent, with a passphrase that the listener knows too. */
  readonly passphrase?: string
  /** Of the AES keys; default 16. */
  readonly keyLengthBytes?: KeyBytes
  /** Packets after which the key is changed for another; default 2^24. */
  readonly kmRefreshPackets?: number
  /** How many packets before its first use the next key is told, less than half of `kmRefreshPackets`; default 2^12. */
  readonly kmPreannouncePackets?: number
  /** Default 3000. */
  readonly connectTimeoutMs?: number
  /** A listener silent for this long is gone; default 5000. */
  readonly idleTimeoutMs?: number
  /** Gives the attempt up; a connection that stands is not affected. */
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly random?: (bytes: number) => Buffer
}

/**
 * Calls a listener.
 *
 * @throws {MillraceError} `SRT_REJECTED`, naming the code; `SRT_TIMEOUT` where nobody answers
 * @throws {RangeError} for an option that SRT cannot take
 * @throws the signal's reason where it aborts first
 */
export async function connect(options: ConnectOptions): Promise<Caller> {
  const { streamId = '', signal } = options
  checkNumbers(options)
  if (Buffer.byteLength(streamId) > MAX_STREAM_ID_BYTES) {
    throw new RangeError(`a stream id takes at most ${MAX_STREAM_ID_BYTES} bytes`)
  }
  const encryption = await createEncryption(options)
  signal?.throwIfAborted()
  const { address } = await lookup(options.host)
  const socket = openSocket(address)
  try {
    // A connected socket sends cheaper, and hears nobody else.
    const connected = once(socket, 'connect')
    socket.connect(options.port, address)
    await connected
    signal?.throwIfAborted()
  } catch (error) {
    socket.close()
    throw error
  }
  return new Promise((resolve, reject) => {
    void new Caller(
      socket,
      address,
      { ...options, encryption },
      { connected: resolve, refused: reject },
    )
  })
}

/** What the fields of the protocol have room for, and the rings for packets. */
const LIMITS = {
  latencyMs: [0, 0xffff],
  peerLatencyMs: [0, 0xffff],
  initialSequenceNumber: [0, MAX_SEQUENCE_NUMBER - 1],
  startTimestampUs: [0, 2 ** 32 - 1],
  sendBufferPackets: [1, 2 ** 20],
  maxBandwidthBps: [1, Number.MAX_SAFE_INTEGER],
} as const

function checkNumbers(options: ConnectOptions): void {
  for (const [name, [least, most]] of Object.entries(LIMITS)) {
    const value = options[name as keyof typeof LIMITS] ?? least
    if (Number.isInteger(value) && value >= least && value <= most) continue
    throw new RangeError(`${name} is a whole number from ${least} to ${most}, not ${value}`)
  }
}

async function createEncryption(options: ConnectOptions): Promise<Encryption | undefined> {
  const { passphrase, keyLengthBytes = 16, random = randomBytes } = options
  const { kmRefreshPackets = 2 ** 24, kmPreannouncePackets = 2 ** 12 } = options
  if (passphrase === undefined) return undefined
  if (!isKeyBytes(keyLengthBytes)) throw new RangeError('an AES key has 16, 24 or 32 bytes')
  if (!(kmPreannouncePackets >= 1 && kmPreannouncePackets * 2 < kmRefreshPackets)) {
    throw new RangeError('a key is told 1 packet ahead at least, and less than half its packets')
  }
  return new Encryption({
    keyEncryptionKey: await deriveKey(passphrase, random(SALT_BYTES), keyLengthBytes),
    refreshPackets: kmRefreshPackets,
    preannouncePackets: kmPreannouncePackets,
    random,
  })
}

/** Who waits for the handshake. */
interface Outcome {
  connected(caller: Caller): void
  refused(reason: unknown): void
}

/** A connection to a listener. */
export class Caller {
  /** Settles when the connection is over; never rejects. */
  readonly closed: Promise<CloseReason>
  readonly #clock: Clock
  readonly #socket: Socket
  readonly #call: Call
  readonly #ticker: NodeJS.Timeout

  /** Use `connect`. */
  constructor(
    socket: Socket,
    address: string,
    options: ConnectOptions & { readonly encryption: Encryption | undefined },
    outcome: Outcome,
  ) {
    const { clock = systemClock, random = randomBytes, latencyMs = 120, signal } = options
    this.#clock = clock
    this.#socket = socket
    let settleClosed: (reason: CloseReason) => void
    this.closed = new Promise((resolve) => {
      settleClosed = resolve
    })
    const refuse = (reason: unknown) => {
      signal?.removeEventListener('abort', abort)
      this.#release()
      outcome.refused(reason)
    }
    const abort = () => refuse(signal?.reason)
    signal?.addEventListener('abort', abort)
    this.#call = new Call({
      remoteAddress: address,
      remotePort: options.port,
      socketId: 1 + (random(4).readUInt32BE() % MAX_SOCKET_ID),
      streamId: options.streamId ?? '',
      latencyMs,
      peerLatencyMs: options.peerLatencyMs ?? latencyMs,
      initialSequenceNumber:
        options.initialSequenceNumber ?? random(4).readUInt32BE() % MAX_SEQUENCE_NUMBER,
      startTimestampUs: options.startTimestampUs ?? 0,
      sendBufferPackets: options.sendBufferPackets ?? 8192,
      maxBandwidthBps: options.maxBandwidthBps ?? 1e9,
      connectTimeoutUs: (options.connectTimeoutMs ?? 3000) * 1000,
      idleTimeoutUs: (options.idleTimeoutMs ?? 5000) * 1000,
      ...(options.encryption && { encryption: options.encryption }),
      host: {
        transmit: (datagram) => socket.send(datagram),
        connected: () => {
          signal?.removeEventListener('abort', abort)
          outcome.connected(this)
        },
        refused: refuse,
        ended: (reason) => {
          this.#release()
          settleClosed(reason)
        },
      },
    })
    socket.on('message', (datagram) => this.#call.handleDatagram(datagram, clock.nowUs()))
    // Nobody listens at the moment (ECONNREFUSED): the time-outs of handshake and connection say when that is final.
    socket.on('error', () => {})
    this.#ticker = setInterval(() => this.#call.tick(clock.nowUs()), TICK_MS)
    this.#call.start(clock.nowUs())
  }

  /**
   * Sends a payload of at most 1456 bytes, best n x 188; it is copied.
   *
   * @returns false where it was not taken: the send buffer is full, or the connection is over
   */
  send(payload: Buffer): boolean {
    if (payload.length > MAX_PAYLOAD_BYTES) {
      throw new RangeError(
        `a payload of ${payload.length} bytes does not fit a packet: at most ${MAX_PAYLOAD_BYTES}`,
      )
    }
    return this.#call.send(payload, this.#clock.nowUs())
  }

  stats(): SenderStats {
    return this.#call.stats()!
  }

  /**
   * Says goodbye once the listener has what was sent, or would not want it any more. Takes the connection's latency, and a
   * second at most where the listener does not answer.
   */
  async close(): Promise<void> {
    this.#call.close()
    await this.closed
  }

  #release(): void {
    clearInterval(this.#ticker)
    this.#socket.close()
  }
}
