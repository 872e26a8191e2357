/**
 * The face of the SRT layer to whoever uses it: what an accept hook sees and answers, what a sink receives.
 *
 * @module
 */

import type { MillraceError } from '../errors.ts'

/** Why a connection ended: the peer said SHUTDOWN, it fell silent, or we closed it. */
export type CloseReason = 'shutdown' | 'timeout' | 'closed'

/** A caller that passed the cookie and waits for an answer. */
export interface ConnectionRequest {
  readonly remoteAddress: string
  readonly remotePort: number
  /** StreamID extension as sent; empty where the caller sent none. Holds credentials: never log it. */
  readonly streamId: string
  /** For example `1.5.1`. */
  readonly peerVersion: string
}

export type AcceptDecision =
  | {
      readonly sink: PayloadSink
      /** What the caller must encrypt with; by default what the listener asks of all. */
      readonly passphrase?: string
      /** The caller was turned away nevertheless, and the sink will hear nothing: its encryption is not what is asked. */
      readonly onRefused?: (error: MillraceError) => void
    }
  | { readonly reject: number }

/** Takes what a connection delivers. All calls come synchronously from the receiving socket; none may throw. */
export interface PayloadSink {
  /** The connection stands; called once, before any payload. */
  open(connection: SrtConnection): void
  /** Payload of one data packet, in sequence. The buffer is the sink's to keep. */
  push(payload: Buffer): void
  /** This many data packets were given up before the next payload (too-late packet drop, draft 4.6). */
  gap(lostPackets: number): void
  /** Last call. */
  end(reason: CloseReason): void
}

/** An accepted connection. */
export interface SrtConnection {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly peerVersion: string
  /** Receive latency that both sides agreed on. */
  readonly latencyMs: number
  /** Microseconds (of `Clock.nowUs`) when the peer was last heard. */
  readonly lastHeardUs: number
  stats(): SrtStats
  /** Sends SHUTDOWN and forgets the connection; the sink's `end('closed')` runs before this returns. */
  close(): void
}

/** Counters since the connection stood, with libsrt's names (`SRT_TRACEBSTATS`) in camel case. */
export interface SrtStats {
  readonly msRtt: number
  readonly pktRecvTotal: number
  /** Payload, with duplicates and retransmissions. */
  readonly byteRecvTotal: number
  /** Found missing on arrival of a later packet, whether repaired or not. */
  readonly pktRcvLossTotal: number
  /** Retransmitted packets that arrived. */
  readonly pktRcvRetransTotal: number
  /** Given up: too late. */
  readonly pktRcvDropTotal: number
  /** Arrived after it had been given up. */
  readonly pktRcvBelatedTotal: number
  readonly pktRcvDuplicateTotal: number
  /** In clear where encryption was agreed on, encrypted where it was not, or with a key that the peer never told. */
  readonly pktRcvUndecryptTotal: number
  /** Of a packet filter (FEC), set aside. */
  readonly pktRcvFilterTotal: number
  /** Dropped on arrival: too far ahead of a missing packet to be kept, or alone so far ahead of all. */
  readonly pktRcvOverflowTotal: number
  /** Jumps of the sequence number that reception followed; what they left out counts as lost and dropped. */
  readonly pktRcvResyncTotal: number
  /** Held behind a missing packet at this moment. */
  readonly pktRcvBuf: number
  /** How many packets one is waited for, before it is taken for lost and asked for: learned from those that came late. */
  readonly pktReorderTolerance: number
  readonly pktSentACKTotal: number
  readonly pktSentNAKTotal: number
  /** NAKs not sent, because they would take too much of the way back. */
  readonly pktNAKWithheldTotal: number
  readonly mbpsRecvRate: number
  readonly msRcvTsbPdDelay: number
  /** How far the sender's clock and the path have moved since the handshake, as far as deadlines have followed. */
  readonly msDrift: number
}

/** Counters of what a caller sent, with libsrt's names in camel case. */
export interface SenderStats {
  readonly msRtt: number
  /** With retransmissions. */
  readonly pktSentTotal: number
  /** Payload, with retransmissions. */
  readonly byteSentTotal: number
  /** Payload over the last second, with retransmissions. */
  readonly mbpsSendRate: number
  readonly pktRetransTotal: number
  readonly byteRetransTotal: number
  /** Asked for again by the peer. */
  readonly pktSndLossTotal: number
  /** Given up: too late. */
  readonly pktSndDropTotal: number
  /** Not taken, because the send buffer was full. */
  readonly pktSndRefusedTotal: number
  /** Light ones included. */
  readonly pktRecvACKTotal: number
  /** Of those, ignored: they name packets that were never sent. */
  readonly pktRecvACKInvalidTotal: number
  readonly pktRecvNAKTotal: number
  /** Sent and not acknowledged. */
  readonly pktFlightSize: number
  /** What the peer has room for: as much may be in flight. */
  readonly pktFlowWindow: number
  /** In the send buffer. */
  readonly pktSndBuf: number
  /** From the first packet in the send buffer to the last. */
  readonly msSndBuf: number
}

/** What happened at a listener's socket, since it was opened. */
export interface ListenerStats {
  readonly inductions: number
  /** Of those, left without an answer: too many in a second, from one network or in all. */
  readonly inductionsDropped: number
  /** Conclusions with a good cookie, left without an answer: too many from one address, from one network or in all. */
  readonly conclusionsDropped: number
  readonly accepted: number
  /** Repeated handshakes of callers that were answered before, or wait for their answer. */
  readonly duplicateHandshakes: number
  /** By reject code on the wire. */
  readonly rejects: Readonly<Record<number, number>>
  /** Answers to a cookie that was issued to somebody else, or never. */
  readonly badCookies: number
  /** Datagrams that cannot be read: too short, too long, lengths that contradict each other. */
  readonly malformed: number
  /** Datagrams for a socket id that nobody has. */
  readonly unknownSocketIds: number
  /** Datagrams for a connection, from another address than its peer's. */
  readonly wrongSources: number
  /** Control packets of connections that send too many of them. */
  readonly controlPacketsDropped: number
  /** Connections closed because their sink threw. */
  readonly failures: number
}
