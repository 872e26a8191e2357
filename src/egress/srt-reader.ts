/**
 * A reader of a stream over SRT: a caller, or a listener that is called.
 *
 * @module
 */
import type { ReaderReport } from '../api/records.ts'
import type { SenderStats } from '../srt/stats.ts'
import type { CloseReason, PayloadSink, SrtConnection } from '../srt/types.ts'
import type { Reader } from '../stream/readers.ts'
import type { Clock } from '../timing/clock.ts'

/** Time in which a reader gets what was sent to it, at the end: longer than a latency of `MAX_LATENCY_MS`. */
const FINISH_MS = 10_000

interface SrtReaderHost {
  /** @returns whether the reader may stay; otherwise `end` is not called */
  open(reader: Reader): boolean
  end(reader: Reader, reason: CloseReason): void
}

export class SrtReader implements PayloadSink, Reader {
  readonly #clock: Clock
  readonly #host: SrtReaderHost
  #connection: SrtConnection | undefined
  #since = new Date(0)
  #isOpen = false

  constructor(clock: Clock, host: SrtReaderHost) {
    this.#clock = clock
    this.#host = host
  }

  open(connection: SrtConnection): void {
    this.#connection = connection
    this.#since = new Date(this.#clock.wallMs())
    this.#isOpen = this.#host.open(this)
    if (!this.#isOpen) connection.close()
  }

  push(): void {}

  gap(): void {}

  end(reason: CloseReason): void {
    if (this.#isOpen) this.#host.end(this, reason)
    this.#isOpen = false
  }

  send(payload: Buffer, nowUs: number): boolean {
    return this.#connection!.send(payload, nowUs)
  }

  report(): ReaderReport {
    const { remoteAddress, remotePort, peerVersion } = this.#connection!
    return {
      remote: `${remoteAddress}:${remotePort}`,
      since: this.#since,
      peerVersion,
      ...reportSending(this.#connection!.senderStats()!),
    }
  }

  close(finishMs = FINISH_MS): void {
    this.#connection?.finish(finishMs * 1000)
  }
}

/** Figures of a connection that sends, under the names used in status. */
function reportSending(stats: SenderStats): Omit<ReaderReport, 'remote' | 'since' | 'peerVersion'> {
  return {
    latencyMs: stats.msPeerTsbPdDelay,
    rttMs: Math.round(stats.msRtt * 1e3) / 1e3,
    bitrateBps: Math.round(stats.mbpsSendRate * 1e6),
    bytesSent: stats.byteSentTotal,
    packetsSent: stats.pktSentTotal,
    packetsLost: stats.pktSndLossTotal,
    packetsRetransmitted: stats.pktRetransTotal,
    packetsDropped: stats.pktSndDropTotal + stats.pktSndRefusedTotal,
  }
}
