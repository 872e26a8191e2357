/**
 * An SRT connection as the encoder of a stream, and its statistics under the names used in status and webhooks.
 *
 * @module
 */
import type { SrtConnection } from '../srt/types.ts'
import type { Encoder } from '../stream/publication.ts'
import type { PublisherKey } from './admission.ts'
import type { LineReport, PublisherReport } from '../api/records.ts'
import type { LineStats } from '../srt/stats.ts'

/** Maximum payload of an SRT packet (draft-sharabayko-srt 3): 1500 bytes less the headers of IPv4, UDP and SRT. */
const MAX_PAYLOAD_BYTES = 1456

/**
 * @param queue  payloads that the connection has delivered, and that wait
 * @param key  what its stream key says
 */
export function asEncoder(
  connection: SrtConnection,
  queue: { readonly sizeBytes: number },
  key: PublisherKey,
): Encoder {
  const { source, program, keyExpiresAtMs, keyId } = key
  return {
    source,
    ...(program !== undefined && { program }),
    ...(keyExpiresAtMs !== undefined && { keyExpiresAtMs }),
    ...(keyId !== undefined && { keyId }),
    get lastPacketUs() {
      return connection.lastReceivedUs
    },
    get lastDataUs() {
      return connection.lastDataUs
    },
    get queuedBytes() {
      return connection.stats().pktRcvBuf * MAX_PAYLOAD_BYTES + queue.sizeBytes
    },
    report: () => reportConnection(connection),
    close: () => connection.close(),
  }
}

/** Report of the connection, with descriptive names in place of libsrt's names. */
function reportConnection(connection: SrtConnection): PublisherReport {
  const stats = connection.stats()
  return {
    remote: `${connection.remoteAddress}:${connection.remotePort}`,
    peerVersion: connection.peerVersion,
    latencyMs: stats.msRcvTsbPdDelay,
    rttMs: rounded(stats.msRtt, 1e3),
    driftMs: rounded(stats.msDrift, 1e3),
    bitrateBps: Math.round(stats.mbpsRecvRate * 1e6),
    bytesReceived: stats.byteRecvTotal,
    packetsReceived: stats.pktRecvTotal,
    packetsLost: stats.pktRcvLossTotal,
    packetsRetransmitted: stats.pktRcvRetransTotal,
    retransmitRatio: rounded(stats.pktRcvRetransTotal / Math.max(stats.pktRecvTotal, 1), 1e4),
    packetsDropped: stats.pktRcvDropTotal,
    packetsBelated: stats.pktRcvBelatedTotal,
    packetsDuplicate: stats.pktRcvDuplicateTotal,
    packetsUndecryptable: stats.pktRcvUndecryptTotal,
    packetsFec: stats.pktRcvFilterExtraTotal,
    packetsOverflowed: stats.pktRcvOverflowTotal,
    sequenceJumps: stats.pktRcvResyncTotal,
    packetsBuffered: stats.pktRcvBuf,
    reorderTolerancePackets: stats.pktReorderTolerance,
    acksSent: stats.pktSentACKTotal,
    naksSent: stats.pktSentNAKTotal,
    naksWithheld: stats.pktNAKWithheldTotal,
    ...(stats.lines && { lines: stats.lines.map(reportLine) }),
  }
}

function reportLine(stats: LineStats): LineReport {
  const packetsLost = stats.pktRcvLossTotal ?? stats.pktSndLossTotal
  return {
    line: stats.line,
    remote: `${stats.remoteAddress}:${stats.remotePort}`,
    bitrateBps: Math.round(stats.mbpsRecvRate * 1e6),
    bytesReceived: stats.byteRecvTotal,
    packetsReceived: stats.pktRecvTotal,
    packetsRetransmitted: stats.pktRcvRetransTotal,
    ...(stats.msRtt !== undefined && { rttMs: rounded(stats.msRtt, 1e3) }),
    ...(packetsLost !== undefined && { packetsLost }),
  }
}

/** @param stepsPerUnit  1000 rounds to three decimals */
function rounded(value: number, stepsPerUnit: number): number {
  return Math.round(value * stepsPerUnit) / stepsPerUnit
}
