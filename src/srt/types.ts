/**
 * Interface between a listener and its user: the accept hook's request and decision, the sink, and the connection.
 *
 * @module
 */
import type { SrtError } from './srt-error.ts'
import type { SenderStats, SrtStats } from './stats.ts'

/**
 * Reason for the end of a connection: SHUTDOWN from the peer, silence of the peer, or a close on this side (`close`, or
 * an exception of the sink).
 */
export type CloseReason = 'shutdown' | 'timeout' | 'closed'

/** A caller that waits for the accept hook. */
export interface ConnectionRequest {
  readonly remoteAddress: string
  readonly remotePort: number
  /** Port of the listener that the caller has called. */
  readonly localPort: number
  /** StreamID extension as sent; empty if the caller sent none. Holds credentials: never log it. */
  readonly streamId: string
  /** SRT version of the caller, for example `1.5.1`. */
  readonly peerVersion: string
  /**
   * Whether it joins a socket group that has a connection already: its payloads go to the sink of that connection. The sink
   * of the decision is used only if the other members end meanwhile.
   */
  readonly isJoining?: boolean
  /** Whether it can go to another listener at this port now: it is shared, and the caller has no other connection here. */
  readonly isMovable?: () => boolean
  /**
   * Checks the caller's encryption before the decision, which checks it anyway. One caller at a time is checked so, and up to
   * 256 wait.
   *
   * @param passphrase  required of the caller; by default `ListenerOptions.passphrase`
   * @returns `ENCRYPTION_MISSING`, `ENCRYPTION_UNEXPECTED` or `PASSPHRASE_WRONG`; undefined if the caller has it
   * @throws an error with the `rejectCode` of the backlog if too many wait
   */
  readonly verifyEncryption: (passphrase?: string) => Promise<SrtError | undefined>
}

/** Caller that goes to another listener at the same port. */
export type MovedCaller = Pick<ConnectionRequest, 'localPort' | 'remotePort' | 'remoteAddress'>

/** What `ListenerOptions.accept` decides about a caller. */
export type AcceptDecision =
  | {
      readonly sink: PayloadSink
      /** Passphrase required of this caller; by default `ListenerOptions.passphrase`. */
      readonly passphrase?: string
      /** Min receive latency for this caller, in milliseconds; by default `ListenerOptions.latencyMs`. */
      readonly latencyMs?: number
      /** Whether payloads are sent to this caller, with `SrtConnection.send`, and its own are discarded; default false. */
      readonly sends?: boolean
      /** Called if the caller's encryption gets it rejected; no method of the sink is called then. */
      readonly onRefused?: (error: SrtError) => void
    }
  | { readonly reject: number }

/** The caller gets no answer: another listener at the port has been told to `expect` it. */
export interface Elsewhere {
  readonly isElsewhere: true
}

/**
 * Receiver of a connection's payloads. The connection calls it synchronously while it handles a datagram, a tick or
 * `close`. An exception closes the connection.
 */
export interface PayloadSink {
  /** The connection is established; called once, before any payload. */
  open(connection: SrtConnection): void
  /** Payload of one data packet, in sequence. The sink owns the buffer. */
  push(payload: Buffer): void
  /** Number of data packets dropped before the next payload (too-late packet drop, draft 4.6). */
  gap(lostPackets: number): void
  /** The connection has ended; the last call. */
  end(reason: CloseReason): void
}

/** An accepted connection, or the connections of a socket group together. */
export interface SrtConnection {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly peerVersion: string
  /** Negotiated receive latency, in milliseconds. */
  readonly latencyMs: number
  /** Time at which the peer's latest packet arrived, in microseconds of `Clock.nowUs`. */
  readonly lastReceivedUs: number
  /** The same for its latest data packet: a peer without media still sends KEEPALIVE. */
  readonly lastDataUs: number
  /** Counters of the receiving side. */
  stats(): SrtStats
  /**
   * Sends a payload, which must not be changed afterwards.
   *
   * @returns false if it was not accepted: the send buffer is full, or the connection is closed or one that does not send
   */
  send(payload: Buffer, nowUs: number): boolean
  /** @returns undefined for a connection that does not send */
  senderStats(): SenderStats | undefined
  /**
   * Takes no more payloads, and closes the connection once the peer has acknowledged all, or it is too late for them, and has
   * had its latency to deliver them; after `limitUs` at the latest. A connection that does not send is closed at once.
   */
  finish(limitUs: number): void
  /** Sends SHUTDOWN and closes the connection; calls the sink's `end('closed')` before it returns. */
  close(): void
}
