/**
 * Warnings about datagrams that the kernel dropped, at most one a minute.
 *
 * @module
 */
import type { AddressInfo } from 'node:net'
import { readKernelDrops } from './kernel-drops.ts'

/** Max interval between readings while the listener is busy. The service calls `read` once per second. */
const MAX_UNREAD_US = 15_000_000
const WARNING_INTERVAL_US = 60_000_000

export interface KernelDropMonitorOptions {
  /** Local addresses of the sockets to watch. */
  readonly sockets: readonly AddressInfo[]
  /** Command that allows a larger receive buffer; undefined if the kernel does not limit it. */
  readonly advice: string | undefined
  readonly onWarning: (message: string) => void
}

export class KernelDropMonitor {
  readonly #options: KernelDropMonitorOptions
  #reportedDrops = 0
  #nextReadUs = 0
  #nextWarningUs = 0

  constructor(options: KernelDropMonitorOptions) {
    this.#options = options
  }

  /**
   * Reads the counters, and warns of new drops.
   *
   * @returns datagrams dropped since the sockets were opened; undefined if the system has no such counter
   */
  async read(nowUs: number): Promise<number | undefined> {
    this.#nextReadUs = nowUs + MAX_UNREAD_US
    const drops = await readKernelDrops(this.#options.sockets)
    this.#warnOf(drops ?? 0, nowUs)
    return drops
  }

  /** Reads the counters, unless they were read within `MAX_UNREAD_US`. */
  tick(nowUs: number): void {
    if (nowUs >= this.#nextReadUs) void this.read(nowUs)
  }

  #warnOf(drops: number, nowUs: number): void {
    if (drops <= this.#reportedDrops || nowUs < this.#nextWarningUs) return
    this.#nextWarningUs = nowUs + WARNING_INTERVAL_US
    const { advice, onWarning } = this.#options
    onWarning(
      `The kernel dropped ${drops - this.#reportedDrops} datagrams for SRT, read too late. Viewers may see holes. ` +
        `Run fewer streams${advice === undefined ? '.' : `, or: ${advice}`}`,
    )
    this.#reportedDrops = drops
  }
}
