/**
 * Warnings about datagrams that the kernel dropped, at most one a minute.
 *
 * @module
 */
import type { AddressInfo } from 'node:net'
import { readKernelDrops } from './kernel-drops.ts'

const CHECK_INTERVAL_US = 10_000_000
const WARNING_INTERVAL_US = 60_000_000

export interface KernelDropMonitorOptions {
  /** Local addresses of the sockets to watch. */
  readonly sockets: readonly AddressInfo[]
  /** Command that allows a larger receive buffer, where the kernel limits it. */
  readonly advice: string | undefined
  readonly onWarning: (message: string) => void
}

export class KernelDropMonitor {
  readonly #options: KernelDropMonitorOptions
  #reportedDrops = 0
  #nextCheckUs = 0
  #nextWarningUs = 0

  constructor(options: KernelDropMonitorOptions) {
    this.#options = options
  }

  /** @returns datagrams dropped since the sockets were opened; undefined where the system does not tell */
  readDrops(): Promise<number | undefined> {
    return readKernelDrops(this.#options.sockets)
  }

  tick(nowUs: number): void {
    if (nowUs < this.#nextCheckUs) return
    this.#nextCheckUs = nowUs + CHECK_INTERVAL_US
    void this.#check(nowUs)
  }

  async #check(nowUs: number): Promise<void> {
    const drops = (await this.readDrops()) ?? 0
    if (drops <= this.#reportedDrops || nowUs < this.#nextWarningUs) return
    this.#nextWarningUs = nowUs + WARNING_INTERVAL_US
    const { advice, onWarning } = this.#options
    onWarning(
      `the kernel dropped ${drops - this.#reportedDrops} datagrams for SRT, read too late: streams lost packets. ` +
        `Run fewer streams${advice === undefined ? '' : `, or set: ${advice}`}`,
    )
    this.#reportedDrops = drops
  }
}
