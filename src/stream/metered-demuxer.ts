/**
 * Demuxer with a CPU budget. While the budget is used up, payloads are dropped; to the demuxer they are lost packets.
 *
 * @module
 */
import { Demuxer } from '../mpegts/demux/demuxer.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import { GAP_US, PAYLOAD_US, workOfMedia, workOfStats } from './work.ts'
import type { WorkBudget } from './work-budget.ts'

export class MeteredDemuxer {
  readonly #demuxer: Demuxer
  readonly #budget: WorkBudget
  /** Cost of the demuxer's counters that the budget has paid. */
  #countedUs = 0
  /** Payloads lost or dropped since the latest demuxed one. */
  #missing = 0

  constructor(program: ProgramChoice, budget: WorkBudget) {
    this.#demuxer = new Demuxer({ program })
    this.#budget = budget
  }

  get stats() {
    return this.#demuxer.stats
  }

  get openBytes() {
    return this.#demuxer.openBytes
  }

  get program() {
    return this.#demuxer.program
  }

  get programNumbers() {
    return this.#demuxer.programNumbers
  }

  push(payload: Buffer, nowUs: number): DemuxerOutput[] {
    if (!this.#budget.admit(payload.length, nowUs)) {
      this.#missing++
      return []
    }
    this.#closeGap()
    const outputs = this.#demuxer.push(payload)
    const countedUs = workOfStats(this.stats)
    let workUs = PAYLOAD_US + countedUs - this.#countedUs
    for (const output of outputs) workUs += workOfMedia(output)
    this.#countedUs = countedUs
    this.#budget.spend(workUs)
    return outputs
  }

  gap(lostPackets: number): void {
    this.#missing += lostPackets
  }

  end(): DemuxerOutput[] {
    this.#closeGap()
    return this.#demuxer.end()
  }

  #closeGap(): void {
    if (this.#missing === 0) return
    this.#demuxer.gap(this.#missing)
    this.#budget.spend(GAP_US)
    this.#missing = 0
  }
}
