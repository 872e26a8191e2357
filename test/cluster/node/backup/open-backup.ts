/**
 * `SegmentBackup` of a test, on a clock that it can set ahead.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { SegmentBackup } from '../../../../src/cluster/node/backup/segment-backup.ts'
import { machineClock } from '../../../../src/timing/clock.ts'

export const KEEP = { ttlMs: 60_000 }
export const READ = { ...KEEP, timeoutMs: 5000 }

export function openBackup(t: Test, urls: readonly string[], maxBytes = 1e8) {
  const lost: string[] = []
  let aheadMs = 0
  const backup = new SegmentBackup({
    ...{ urls, maxBytes, onLost: (reason: string) => lost.push(reason) },
    clock: { nowUs: () => machineClock.nowUs() + aheadMs * 1000 },
  })
  t.teardown(() => backup.close())
  backup.connect()
  return { backup, lost, pass: (ms: number) => (aheadMs += ms) }
}

/** Writes a segment. @returns its media, and whether its memory may be reused */
export function write(
  backup: SegmentBackup,
  streamId: string,
  uri: string,
  sizes: readonly number[],
) {
  const chunks = sizes.map((size) => randomBytes(size))
  const written = { chunks, sizeBytes: sizes.reduce((sum, size) => sum + size, 0), isDone: false }
  backup.write(streamId, { uri, chunks, ...KEEP, onDone: () => (written.isDone = true) })
  return written
}

/** Waits until a server takes segments. */
export async function isOpen(backup: SegmentBackup, streamId = 'studio') {
  await backup.read(streamId, [], READ)
}
