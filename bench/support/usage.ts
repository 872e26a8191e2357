/**
 * What the kernel says of processes and sockets. Linux only: elsewhere the answers are NaN, a dash in the tables.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseKernelDrops } from '../../src/srt/io/kernel-drops.ts'

/** USER_HZ: the same for all programs, whatever the kernel ticks at. */
const TICKS_PER_SEC = 100

export interface Usage {
  /** Of all threads since the start, user and system. */
  readonly cpuSec: number
  readonly rssBytes: number
}

/** Sum over the processes. */
export function usageOf(pids: readonly number[]): Usage {
  return {
    cpuSec: pids.reduce((sum, pid) => sum + readCpuSec(pid), 0),
    rssBytes: pids.reduce((sum, pid) => sum + readRssBytes(pid), 0),
  }
}

/** Of the process that asks: finer than what the kernel tells others. */
export function selfUsage(): Usage {
  const { user, system } = process.cpuUsage()
  return { cpuSec: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() }
}

const DELAY_SAMPLE_MS = 10

/**
 * By how much timers of this process are late, at the 99th percentile of so long a time. To be measured apart from CPU:
 * an idle process wakes up for it.
 */
export async function loopDelayP99Ms(durationMs: number): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: DELAY_SAMPLE_MS })
  delay.enable()
  await sleep(durationMs)
  delay.disable()
  return Math.max(0, delay.percentile(99) / 1e6 - DELAY_SAMPLE_MS)
}

/** What all processors of the machine worked together since its start. */
export function machineCpuSec(): number {
  const [, user, nice, system, , , irq, softirq] = (read('/proc/stat').split('\n')[0] ?? '')
    .split(/\s+/)
    .map(Number)
  return (user! + nice! + system! + irq! + softirq!) / TICKS_PER_SEC
}

/** The processes that `pid` started and that still run. */
export function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

/** Datagrams the kernel dropped at UDP sockets bound to these ports, because their receive buffers were full. */
export function kernelDrops(ports: readonly number[]): number {
  return ['/proc/net/udp', '/proc/net/udp6']
    .flatMap((table) => [...parseKernelDrops(read(table))])
    .filter(([local]) => ports.includes(Number.parseInt(local.slice(local.indexOf(':') + 1), 16)))
    .reduce((sum, [, drops]) => sum + drops, 0)
}

/** Fields 14 and 15 of proc(5) stat; the second may hold spaces, so counting starts behind it. */
function readCpuSec(pid: number): number {
  const stat = read(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SEC
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
