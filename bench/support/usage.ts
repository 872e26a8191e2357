/**
 * Figures of the kernel for processes and sockets. On systems other than Linux they are NaN, a dash in tables.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseKernelDrops } from '../../src/srt/io/kernel-drops.ts'

/** USER_HZ, which is independent of the kernel's tick rate. */
const TICKS_PER_SEC = 100

export interface Usage {
  /** CPU seconds of all threads since the start, user and system. */
  readonly cpuSec: number
  readonly rssBytes: number
}

/** @returns sum over processes */
export function usageOf(pids: readonly number[]): Usage {
  return {
    cpuSec: pids.reduce((sum, pid) => sum + readCpuSec(pid), 0),
    rssBytes: pids.reduce((sum, pid) => sum + readRssBytes(pid), 0),
  }
}

/** @returns usage of this process, finer than that of other processes */
export function selfUsage(): Usage {
  const { user, system } = process.cpuUsage()
  return { cpuSec: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() }
}

/** @returns CPU seconds of this process and of its children that have ended */
export function ownCpuSec(): number {
  const fields = statFields('self')
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0) / TICKS_PER_SEC
}

const DELAY_SAMPLE_MS = 10

/**
 * Measures the lateness of timers in this process, as 99th percentile over a time. Measure CPU separately, since this
 * wakes an idle process.
 */
export async function loopDelayP99Ms(durationMs: number): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: DELAY_SAMPLE_MS })
  delay.enable()
  await sleep(durationMs)
  delay.disable()
  return Math.max(0, delay.percentile(99) / 1e6 - DELAY_SAMPLE_MS)
}

/** @returns CPU seconds of all processors since boot */
export function machineCpuSec(): number {
  const [, user, nice, system, , , irq, softirq] = (read('/proc/stat').split('\n')[0] ?? '')
    .split(/\s+/)
    .map(Number)
  return (user! + nice! + system! + irq! + softirq!) / TICKS_PER_SEC
}

/** @returns running children of `pid` */
export function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

/** @returns `pid` and the processes that it and its children have started */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

/** @returns datagrams that the kernel dropped at full receive buffers of these UDP ports */
export function kernelDrops(ports: readonly number[]): number {
  return ['/proc/net/udp', '/proc/net/udp6']
    .flatMap((table) => parseKernelDrops(read(table)))
    .filter(({ address }) => ports.includes(Number.parseInt(address.split(':')[1]!, 16)))
    .reduce((sum, { drops }) => sum + drops, 0)
}

function readCpuSec(pid: number): number {
  const fields = statFields(pid)
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SEC
}

/** Reads proc(5) stat from field 3 on, behind field 2, which may contain spaces. */
function statFields(pid: number | 'self'): string[] {
  const stat = read(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readRssBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1]
  return Number(kib) * 1024
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
