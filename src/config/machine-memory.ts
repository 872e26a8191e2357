/**
 * Memory of the machine, for defaults that depend on it.
 *
 * @module
 */
import { totalmem } from 'node:os'

const MIB = 1024 * 1024

/**
 * Memory that this process may use, in bytes: the memory of the machine, or the limit of its container (cgroup v1 and
 * v2).
 *
 * @param limitBytes  limit of the container; 0 if unknown, more than `machineBytes` without a limit
 */
export function usableMemoryBytes(
  machineBytes = totalmem(),
  limitBytes = process.constrainedMemory(),
): number {
  return limitBytes > 0 ? Math.min(machineBytes, limitBytes) : machineBytes
}

/** A quarter of the memory in MiB, within the given bounds. */
export function quarterMib(memoryBytes: number, minMib: number, maxMib: number): number {
  return Math.min(maxMib, Math.max(minMib, Math.floor(memoryBytes / 4 / MIB)))
}
