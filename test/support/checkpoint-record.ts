/**
 * Checkpoint of a stream as a process records it that is told its changes.
 */
import type { CheckpointChange, StreamCheckpoint } from '../../src/hls/playlist/checkpoint.ts'

/** @param checkpoint  before the change; undefined for the first one */
export function applyChange(
  checkpoint: StreamCheckpoint | undefined,
  { head, rows, oldest }: CheckpointChange,
): StreamCheckpoint {
  const byNumber = new Map(
    [...(checkpoint?.rows ?? []), ...rows].map((row) => [row.mediaSequence, row]),
  )
  const all = [...byNumber.values()].toSorted((a, b) => a.mediaSequence - b.mediaSequence)
  return { ...head, rows: all.filter(({ mediaSequence }) => mediaSequence >= oldest) }
}
