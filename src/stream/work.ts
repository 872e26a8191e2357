/**
 * Cost of a publisher's media, counted instead of timed: the same bytes cost the same on every machine, however busy,
 * and garbage collection is not charged to anyone. The unit is the nominal microsecond, measured
 * with `npm run bench -- media-cost` on a core of 2025. A slower core is slower for clean media too.
 *
 * @module
 */
import type { PackagerOutput } from '../hls/packager.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'

/** CPU cost of each event that a demuxer counter counts. */
const COUNTER_US = {
  packets: 0.15,
  lostSyncs: 1,
  skippedBytes: 0.01,
  sections: 0.5,
  sectionBytes: 0.01,
  spliceSections: 5,
  units: 3.5,
  malformedPes: 1,
  nalUnits: 1.5,
  nalBytes: 0.02,
  addedPackets: 1.5,
} as const satisfies Partial<Record<keyof DemuxerStats, number>>

/** Cost of one payload, however short. */
export const PAYLOAD_US = 0.3

/** Cost of a loss: each open PES packet is checked. */
export const GAP_US = 10

/** Cost of a program that changed, and of each of its tracks. */
const PROGRAM_US = 10
const TRACK_US = 1

/** Cost of a segmentation descriptor. */
const SEGMENTATION_US = 3

/** CPU cost of a generated PES packet of silence. */
export const MADE_UNIT_US = 4

/** Cost of a segment, a part or a gap: its events, and a playlist that is rendered anew and sent to all viewers. */
const SEGMENT_US = 100
const PART_US = 50
const DATE_RANGE_US = 50
const RENDITIONS_US = 50

/**
 * CPU cost of everything that a demuxer has counted so far, in nominal microseconds. A loop over the names would take
 * 2 % of the CPU of ingest, since it is called for each payload.
 */
export function workOfStats(stats: Readonly<DemuxerStats>): number {
  return (
    stats.packets * COUNTER_US.packets +
    stats.lostSyncs * COUNTER_US.lostSyncs +
    stats.skippedBytes * COUNTER_US.skippedBytes +
    stats.sections * COUNTER_US.sections +
    stats.sectionBytes * COUNTER_US.sectionBytes +
    stats.spliceSections * COUNTER_US.spliceSections +
    stats.units * COUNTER_US.units +
    stats.malformedPes * COUNTER_US.malformedPes +
    stats.nalUnits * COUNTER_US.nalUnits +
    stats.nalBytes * COUNTER_US.nalBytes +
    stats.addedPackets * COUNTER_US.addedPackets
  )
}

/** CPU cost of a demuxer output that `workOfStats` does not include, in nominal microseconds. */
export function workOfMedia(output: DemuxerOutput): number {
  if (output.type === 'program') return PROGRAM_US + output.program.tracks.length * TRACK_US
  if (output.type !== 'splice' || output.splice.command.type !== 'time-signal') return 0
  return output.splice.command.segmentations.length * SEGMENTATION_US
}

/** CPU cost of a packager output, in nominal microseconds. */
export function workOfPackaging({ type }: PackagerOutput): number {
  if (type === 'segment') return SEGMENT_US
  if (type === 'part') return PART_US
  if (type === 'date-range') return DATE_RANGE_US
  return type === 'renditions' ? RENDITIONS_US : 0
}
