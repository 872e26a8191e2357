/**
 * Figures of a new connection over a short link without losses.
 *
 * @module
 */
import type { ConnectionReport, SrtCounters } from '../../src/api/records.ts'

export const PUBLISHER_REPORT: ConnectionReport & SrtCounters = {
  remote: '192.0.2.1:5000',
  peerVersion: '1.5.1',
  latencyMs: 120,
  rttMs: 1,
  driftMs: 0,
  bitrateBps: 0,
  bytesReceived: 0,
  packetsReceived: 0,
  packetsLost: 0,
  packetsRetransmitted: 0,
  retransmitRatio: 0,
  packetsDropped: 0,
  packetsBelated: 0,
  packetsDuplicate: 0,
  packetsUndecryptable: 0,
  packetsFec: 0,
  packetsOverflowed: 0,
  sequenceJumps: 0,
  packetsBuffered: 0,
  reorderTolerancePackets: 0,
  acksSent: 0,
  naksSent: 0,
  naksWithheld: 0,
}
