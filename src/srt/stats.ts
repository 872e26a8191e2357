/**
 * Statistics of connections, named as in libsrt (`SRT_TRACEBSTATS`), and statistics of listeners.
 *
 * Names of connection statistics begin with the unit: `pkt` packets, `byte` bytes of payload, `ms` milliseconds, `mbps`
 * megabits per second. Names that end in `Total` are counts since the handshake; the others are current values.
 *
 * @module
 */

/** Statistics of the receiving side. */
export interface SrtStats {
  readonly msRtt: number
  readonly pktRecvTotal: number
  /** Payload received, duplicates and retransmissions included. */
  readonly byteRecvTotal: number
  /** Packets found missing when a later one arrived, retransmitted in time or not; of a bonded peer, those reported. */
  readonly pktRcvLossTotal: number
  /** Retransmitted packets received. */
  readonly pktRcvRetransTotal: number
  /** Missing packets dropped: too late, dropped by the sender, skipped in a jump, or missing at the end. */
  readonly pktRcvDropTotal: number
  /** Packets that arrived after they had been dropped. */
  readonly pktRcvBelatedTotal: number
  readonly pktRcvDuplicateTotal: number
  /** Clear packets on an encrypted connection, encrypted packets on a clear one, or packets under an unknown key. */
  readonly pktRcvUndecryptTotal: number
  /** Packets of a packet filter (FEC), discarded. */
  readonly pktRcvFilterExtraTotal: number
  /** Packets discarded beyond the receive window, unless the receiver followed the jump (`pktRcvResyncTotal`). */
  readonly pktRcvOverflowTotal: number
  /** Jumps of the sequence number that the receiver followed; the numbers skipped count as lost and dropped. */
  readonly pktRcvResyncTotal: number
  /** Packets held behind a missing one. */
  readonly pktRcvBuf: number
  /** Packets that may follow a missing one before it is reported as lost; adapts to the reordering observed. */
  readonly pktReorderTolerance: number
  readonly pktSentACKTotal: number
  readonly pktSentNAKTotal: number
  /** NAKs not sent, because they would exceed their share of the return path. */
  readonly pktNAKWithheldTotal: number
  readonly mbpsRecvRate: number
  readonly msRcvTsbPdDelay: number
  /** Sum of the corrections for drift of the sender's clock and of the path delay since the handshake. */
  readonly msDrift: number
  /** Lines of a bonded peer; absent for another. */
  readonly lines?: readonly LineStats[]
}

/** Statistics of the sending side. */
export interface SenderStats {
  readonly msRtt: number
  /** Packets sent, retransmissions included. */
  readonly pktSentTotal: number
  /** Payload sent, retransmissions included. */
  readonly byteSentTotal: number
  /** Rate of payload sent over the last second, retransmissions included. */
  readonly mbpsSendRate: number
  readonly pktRetransTotal: number
  readonly byteRetransTotal: number
  /** Packets in flight that NAKs reported as lost; further NAKs for a packet within a round trip do not count. */
  readonly pktSndLossTotal: number
  /** Packets dropped as too late to send. */
  readonly pktSndDropTotal: number
  /** Payloads refused because the send buffer was full. */
  readonly pktSndRefusedTotal: number
  /** ACKs received, light ones included. */
  readonly pktRecvACKTotal: number
  /** ACKs ignored because they acknowledge packets that were never sent. */
  readonly pktRecvACKInvalidTotal: number
  readonly pktRecvNAKTotal: number
  /** Packets sent and neither acknowledged nor dropped. */
  readonly pktFlightSize: number
  /** Packets that the peer has room for: the limit on `pktFlightSize`. */
  readonly pktFlowWindow: number
  /** Packets in the send buffer. */
  readonly pktSndBuf: number
  /** Time from the first packet in the send buffer to the last. */
  readonly msSndBuf: number
  /** Receive latency of the peer. */
  readonly msPeerTsbPdDelay: number
}

/** Statistics of a line of a bonded peer: an SRTLA line, or a member of a socket group. */
export interface LineStats {
  /** Number of the line in its group, from 1 on. */
  readonly line: number
  readonly remoteAddress: string
  readonly remotePort: number
  readonly mbpsRecvRate: number
  /** Packets of SRT as they came, headers included; of a socket group, data packets alone. */
  readonly byteRecvTotal: number
  /** Data packets, retransmissions included. */
  readonly pktRecvTotal: number
  readonly pktRcvRetransTotal: number
  /** SRTLA: as the sender reports it; absent for senders that do not. */
  readonly msRtt?: number
  /** SRTLA: losses on the line as the sender counts them; absent for senders that do not report them. */
  readonly pktSndLossTotal?: number
  /** Socket group: packets found missing on the line when a later one arrived, whether another line brings them or not. */
  readonly pktRcvLossTotal?: number
}

/** Statistics of the SRTLA port. */
export interface SrtlaStats {
  readonly groups: number
  readonly lines: number
  /** Datagrams other than packets of SRT on registered lines. */
  readonly datagrams: number
  /** Groups since the port was opened. */
  readonly founded: number
  /** Lines refused, because all groups or all lines of a group are taken, or the address belongs to another group. */
  readonly refused: number
  /** Registrations and keepalives dropped at a rate limit. */
  readonly limited: number
  /** Datagrams from addresses that have not registered. */
  readonly unregistered: number
  /** Registrations of another length, packets of an unknown type or too short for SRT. */
  readonly malformed: number
}

/** Counters of a listener since it was opened. */
export interface ListenerStats {
  /** Datagrams read. */
  readonly datagrams: number
  /** Datagrams read that belong to a connection. */
  readonly connectionDatagrams: number
  readonly inductions: number
  /** Inductions dropped at a rate limit: that of their network or that of all networks. */
  readonly inductionsDropped: number
  /** Conclusions with a valid cookie dropped at a rate limit: that of their address, their network or all networks. */
  readonly conclusionsDropped: number
  readonly accepted: number
  /** Repeated conclusions of callers that have their response or wait for it. */
  readonly duplicateHandshakes: number
  /** Rejections by reject code on the wire. */
  readonly rejects: Readonly<Record<number, number>>
  /** Conclusions with a cookie that was never issued, has expired, or belongs to another caller. */
  readonly badCookies: number
  /** Datagrams that cannot be parsed: too short, too long, or with invalid fields. KMREQs that cannot be adopted. */
  readonly malformed: number
  /** Datagrams for a socket id without a connection. */
  readonly unknownSocketIds: number
  /** Datagrams for a connection from an address other than its peer's. */
  readonly wrongSources: number
  /** Control packets dropped at the rate limit of their connection. */
  readonly controlPacketsDropped: number
  /** Exceptions of sinks or of this code; each closes its connection. */
  readonly failures: number
}
