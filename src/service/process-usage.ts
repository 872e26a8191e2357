/**
 * CPU time, memory and start of the process, for metrics and the dashboard.
 *
 * @module
 */

export interface ProcessUsage {
  readonly cpuSec: number
  readonly residentBytes: number
  readonly heapBytes: number
  /** Start of the process, in seconds since 1970. */
  readonly startedSec: number
  /** Time since its start, also when the clock of the machine has been set. */
  readonly uptimeSec: number
}

export function readProcess(): ProcessUsage {
  const cpu = process.cpuUsage()
  const memory = process.memoryUsage()
  return {
    cpuSec: (cpu.user + cpu.system) / 1e6,
    residentBytes: memory.rss,
    heapBytes: memory.heapUsed,
    startedSec: performance.timeOrigin / 1000,
    uptimeSec: process.uptime(),
  }
}
