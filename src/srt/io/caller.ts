/**
 * SRT caller: connects to a listener, sends payloads to it and receives its own. Drives a `Call` with socket, clock and timer.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { MAX_SEQUENCE_NUMBER } from '../wire/counters.ts'
import { systemClock, type Clock } from '../../timing/clock.ts'
import { Call } from '../connection/call.ts'
import { MAX_SOCKET_ID } from '../connection/socket-table.ts'
import { Encryption, PREANNOUNCE_PACKETS, REFRESH_PACKETS } from '../crypto/encryption.ts'
import { deriveKey } from '../crypto/key-encryption.ts'
import type { SenderStats } from '../stats.ts'
import { TICK_MS } from '../timers.ts'
import type { CloseReason, PayloadSink } from '../types.ts'
import { isKeyBytes, SALT_BYTES, type KeyBytes } from '../wire/key-material.ts'
import { MAX_STREAM_ID_BYTES } from '../wire/limits.ts'
import { MAX_PAYLOAD_BYTES } from '../wire/packet.ts'
import { enlargeReceiveBuffer, openSocket, transmit } from './socket.ts'

/** Options of `connect`. */
export interface ConnectOptions {
  readonly host: string
  readonly port: number
  /** StreamID, at most `MAX_STREAM_ID_BYTES`. */
  readonly streamId?: string
  /** Receive latency of this side, and default of `peerLatencyMs`, in milliseconds; default 120. */
  readonly latencyMs?: number
  /** Receive latency proposed to the listener, which may choose another, in milliseconds; default `latencyMs`. */
  readonly peerLatencyMs?: number
  /** Sequence number of the first packet; random by default. */
  readonly initialSequenceNumber?: number
  /** Timestamp of the first packet, 0 to 2^32 - 1; default 0. */
  readonly startTimestampUs?: number
  /** Capacity of the send buffer, rounded up to a power of two; default 8192. */
  readonly sendBufferPackets?: number
  /** Bandwidth limit in bits per second, IP and UDP headers included; default 1e9. */
  readonly maxBandwidthBps?: number
  /** Passphrase of the listener; without one, payloads are sent in clear. */
  readonly passphrase?: string
  /** Length of the AES keys; default 16. */
  readonly keyLengthBytes?: KeyBytes
  /** Number of packets encrypted with one key (`SRTO_KMREFRESHRATE`); default 2^24. */
  readonly kmRefreshPackets?: number
  /** Number of packets before a key change at which the next key is announced (`SRTO_KMPREANNOUNCE`); default 2^12. */
  readonly kmPreannouncePackets?: number
  /** Max time for the handshake, in milliseconds; default 3000. */
  readonly connectTimeoutMs?: number
  /** Silence of the listener in milliseconds after which the connection ends; default 5000. */
  readonly idleTimeoutMs?: number
  /** Receiver of the listener's payloads; default: they are discarded. */
  readonly sink?: PayloadSink
  /** Whether data packets of the listener are taken; otherwise they are discarded as they arrive. Default true. */
  readonly receives?: boolean
  /** Receives warnings for the operator, without secrets; default: what a sink throws is thrown. */
  readonly onWarning?: (message: string) => void
  /** Aborts the handshake; an established connection is not affected. */
  readonly signal?: AbortSignal
  readonly clock?: Clock
  /** Random bytes for keys, salts and socket ids; default: those of `node:crypto`. */
  readonly random?: (bytes: number) => Buffer
}

/**
 * Calls a listener.
 *
 * @throws {SrtError} `SRT_REJECTED`, with the reason in its message; `SRT_TIMEOUT` without a response
 * @throws {RangeError} for an option out of range
 * @throws the signal's reason if it aborts first
 */
export async function connect(options: ConnectOptions): Promise<Caller> {
  const { streamId = '', signal } = options
  checkNumbers(options)
  if (Buffer.byteLength(streamId) > MAX_STREAM_ID_BYTES) {
    throw new RangeError(`the StreamID is longer than ${MAX_STREAM_ID_BYTES} bytes: shorten it`)
  }
  const encryption = await createEncryption(options)
  signal?.throwIfAborted()
  const { address } = await lookup(options.host)
  const socket = openSocket(address)
  try {
    // A connected socket sends faster, and receives from this peer only.
    const connected = once(socket, 'connect')
    socket.connect(options.port, address)
    await connected
    if (options.sink !== undefined && options.receives !== false) enlargeReceiveBuffer(socket)
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

/** Min and max of numeric options, as protocol fields and send buffer allow. */
const LIMITS = {
  latencyMs: [0, 0xffff],
  peerLatencyMs: [0, 0xffff],
  initialSequenceNumber: [0, MAX_SEQUENCE_NUMBER - 1],
  startTimestampUs: [0, 2 ** 32 - 1],
  sendBufferPackets: [1, 2 ** 20],
  maxBandwidthBps: [1, Number.MAX_SAFE_INTEGER],
} as const

function checkNumbers(options: ConnectOptions): void {
  for (const [name, [min, max]] of Object.entries(LIMITS)) {
    const value = options[name as keyof typeof LIMITS] ?? min
    if (Number.isInteger(value) && value >= min && value <= max) continue
    throw new RangeError(`${name} is a whole number from ${min} to ${max}, not ${value}`)
  }
}

async function createEncryption(options: ConnectOptions): Promise<Encryption | undefined> {
  const { passphrase, keyLengthBytes = 16, random = randomBytes } = options
  const { kmRefreshPackets = REFRESH_PACKETS, kmPreannouncePackets = PREANNOUNCE_PACKETS } = options
  if (passphrase === undefined) return undefined
  if (!isKeyBytes(keyLengthBytes))
    throw new RangeError(`keyLengthBytes is ${String(keyLengthBytes)}: set 16, 24 or 32`)
  if (!(kmPreannouncePackets >= 1 && kmPreannouncePackets * 2 < kmRefreshPackets)) {
    throw new RangeError(
      `kmPreannouncePackets is ${kmPreannouncePackets}: set 1 or more, below half of kmRefreshPackets (${kmRefreshPackets})`,
    )
  }
  return new Encryption({
    keyEncryptionKey: await deriveKey(passphrase, random(SALT_BYTES), keyLengthBytes),
    refreshPackets: kmRefreshPackets,
    preannouncePackets: kmPreannouncePackets,
    random,
  })
}

/** Outcome of the handshake. */
interface Outcome {
  connected(caller: Caller): void
  refused(reason: unknown): void
}

/** A connection to a listener. */
export class Caller {
  /** Resolves when the connection ends; never rejects. */
  readonly closed: Promise<CloseReason>
  readonly #clock: Clock
  readonly #socket: Socket
  readonly #call: Call
  readonly #ticker: NodeJS.Timeout
  /** Total time that the event loop has waited for input, in milliseconds, up to the latest tick. */
  #idleMs = 0

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
      sink: options.sink,
      ...(options.receives !== undefined && { receives: options.receives }),
      host: {
        transmit: (datagram) => transmit(socket, datagram),
        connected: () => {
          signal?.removeEventListener('abort', abort)
          outcome.connected(this)
        },
        refused: refuse,
        ended: (reason) => {
          this.#release()
          settleClosed(reason)
        },
        fail: (error) => {
          if (options.onWarning === undefined) throw error
          const message = `A sink threw ${String(error)}. Its SRT connection is closed. Report this line.`
          options.onWarning(message)
        },
      },
    })
    socket.on('message', (datagram) => this.#call.handleDatagram(datagram, clock.nowUs()))
    // ECONNREFUSED: no listener at the moment. The timeouts of handshake and connection decide when that is final.
    socket.on('error', () => {})
    this.#ticker = setInterval(() => this.#tick(), TICK_MS)
    this.#call.start(clock.nowUs())
  }

  /**
   * Sends a copy of a payload of at most 1456 bytes, ideally whole TS packets (n x 188).
   *
   * @returns false if the payload was not accepted: the send buffer is full, or the connection is closing or closed
   * @throws {RangeError} for a longer payload
   */
  send(payload: Buffer): boolean {
    if (payload.length > MAX_PAYLOAD_BYTES) {
      throw new RangeError(
        `the payload has ${payload.length} bytes: split it, a packet holds ${MAX_PAYLOAD_BYTES}`,
      )
    }
    return this.#call.send(Buffer.from(payload), this.#clock.nowUs())
  }

  /** Counters of the connection. */
  stats(): SenderStats {
    return this.#call.stats()!
  }

  /**
   * Sends SHUTDOWN once all payloads are acknowledged and the listener's latency has passed. A payload without an ACK
   * is dropped after that latency, but not before 1 s.
   */
  async close(): Promise<void> {
    this.#call.close()
    await this.closed
  }

  #tick(): void {
    // The event loop waits for input only when the socket is empty.
    const { idle } = performance.eventLoopUtilization()
    this.#call.tick(this.#clock.nowUs(), idle > this.#idleMs)
    this.#idleMs = idle
  }

  #release(): void {
    clearInterval(this.#ticker)
    this.#socket.close()
  }
}
