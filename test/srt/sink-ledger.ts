/**
 * Sink of numbered packets, which records what violates the order.
 *
 * @module
 */
import type { CloseReason, PayloadSink, SrtConnection } from '../../src/srt/types.ts'

interface Hooks {
  onPush?(number: number): void
  onGap?(first: number, lostPackets: number): void
}

export class SinkLedger implements PayloadSink {
  readonly violations: string[] = []
  connection: SrtConnection | undefined
  opened = 0
  pushed = 0
  /** Number of packets in gaps. */
  gaps = 0
  /** Number of the packet that is due. */
  position = 0
  endReason: CloseReason | undefined
  readonly #hooks: Hooks

  constructor(hooks: Hooks = {}) {
    this.#hooks = hooks
  }

  open(connection: SrtConnection): void {
    this.opened++
    this.connection = connection
  }

  push(payload: Buffer): void {
    const number = payload.readUInt32BE()
    if (number !== this.position)
      this.violations.push(`packet ${number} where ${this.position} was due`)
    if (this.endReason !== undefined) this.violations.push('a payload after the end')
    this.position = number + 1
    this.pushed++
    this.#hooks.onPush?.(number)
  }

  gap(lostPackets: number): void {
    if (lostPackets < 1) this.violations.push(`a gap of ${lostPackets}`)
    this.#hooks.onGap?.(this.position, lostPackets)
    this.position += lostPackets
    this.gaps += lostPackets
  }

  end(reason: CloseReason): void {
    if (this.endReason !== undefined) this.violations.push('a second end')
    this.endReason = reason
  }
}
