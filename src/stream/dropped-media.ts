/**
 * Media of a stream that was dropped on its way from the encoders to the segments, by reason.
 *
 * @module
 */
import type { DropReason, StreamTotals } from '../api/records.ts'
import type { PackagerStats } from '../hls/packager.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'

interface Counters {
  /** Payloads dropped for their cost. */
  readonly payloads: number
  readonly demuxed: Readonly<DemuxerStats>
  readonly packaged: PackagerStats
}

/** @returns the reasons that count more than 0 */
export function countDropped({ payloads, demuxed, packaged }: Counters): StreamTotals['dropped'] {
  const counts: Readonly<Record<DropReason, number>> = {
    tooCostly: payloads,
    syncLost: demuxed.lostSyncs,
    transportError: demuxed.transportErrors,
    scrambled: demuxed.scrambledPackets,
    malformedPacket: demuxed.malformedPackets,
    duplicate: demuxed.duplicatePackets,
    orphan: demuxed.orphanPackets,
    tableCrc: demuxed.psiCrcErrors,
    tableFlood: demuxed.unpaidTables,
    encryptedSplice: demuxed.encryptedSplices,
    malformedSplice: demuxed.malformedSplices,
    malformedPes: demuxed.malformedPes,
    unconfigured: demuxed.unconfiguredUnits,
    incompleteAudio: demuxed.incompleteFrames,
    oversize: demuxed.oversizedPes + packaged.oversizePackets,
    damaged: packaged.damagedPackets,
    beforeKeyFrame: packaged.packetsBeforeStart,
    audio: packaged.droppedAudioPackets,
    data: packaged.droppedDataPackets,
    otherRendition: packaged.otherDroppedPackets,
    cmaf: packaged.droppedSamples,
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}
