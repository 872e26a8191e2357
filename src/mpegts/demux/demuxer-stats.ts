/**
 * Counters of a demuxer. None ever decreases.
 *
 * @module
 */

/**
 * Counters of a demuxer.
 *
 * @interface
 */
export type DemuxerStats = ReturnType<typeof createDemuxerStats>

export function createDemuxerStats() {
  return {
    /** Transport packets of any PID. */
    packets: 0,
    /** Losses of packet synchronization: a sync byte was missing (ETSI TR 101 290 1.2). */
    lostSyncs: 0,
    /** Bytes skipped to find the next packet, and bytes of packets that a loss cut short. */
    skippedBytes: 0,
    /** Packets with `transport_error_indicator`, dropped (ETSI TR 101 290 2.1). */
    transportErrors: 0,
    /** Packets with scrambled payload, dropped. */
    scrambledPackets: 0,
    /** Packets with an impossible adaptation field or `adaptation_field_control` 00, dropped. */
    malformedPackets: 0,
    /** Jumps of a continuity counter without `discontinuity_indicator` (ETSI TR 101 290 1.4). */
    continuityErrors: 0,
    /** Repetitions of the previous packet on the same PID, dropped. */
    duplicatePackets: 0,
    /** Packets of a PES packet whose start is missing, dropped. */
    orphanPackets: 0,

    /** Valid PAT sections, repetitions included. */
    patSections: 0,
    /** Valid PMT sections, repetitions included. */
    pmtSections: 0,
    /** Sections in the long syntax and splice information sections, whether or not their CRC_32 is right. */
    sections: 0,
    sectionBytes: 0,
    /** PAT and PMT changes that exceeded the table credit, ignored. */
    unpaidTables: 0,
    /** Sections with a wrong CRC_32, dropped (ETSI TR 101 290 2.2). */
    psiCrcErrors: 0,
    /** Splice information sections with a right CRC_32, including repeated, encrypted and malformed ones. */
    spliceSections: 0,
    /** Encrypted splice information sections, dropped. */
    encryptedSplices: 0,
    /** Splice information sections that do not parse, dropped. */
    malformedSplices: 0,

    /** PES packets emitted as units. */
    units: 0,
    /** Emitted PES packets with lost or damaged bytes. */
    damagedUnits: 0,
    /** NAL units parsed to classify access units. */
    nalUnits: 0,
    /** Bytes of the parsed NAL units. */
    nalBytes: 0,
    /** NAL units found in the search for frames. */
    foundNals: 0,
    /** Transport packets added to PES packets by inserted NAL units and by the conversion from LATM. */
    addedPackets: 0,
    /** PES packets of video that are cut anew into frames. */
    splitPes: 0,
    /** Video frames in PES packets of their own, since those sent were not frames. */
    splitFrames: 0,
    /** Places at which a frame header of audio was looked for. */
    triedHeaders: 0,
    /** AAC frames that lack their start or their end, dropped. */
    incompleteFrames: 0,
    /** Frames read in LATM. */
    latmFrames: 0,
    /** PES packets without a valid header, dropped. */
    malformedPes: 0,
    /**
     * PES packets without a PTS whose times are not counted: they take those of an earlier PES packet, or are dropped when there
     * is none.
     */
    pesWithoutPts: 0,
    /** LATM PES packets before the first StreamMuxConfig, dropped. */
    unconfiguredUnits: 0,
    /** Open PES packets and frames dropped at the limit of audio, or of held bytes. */
    oversizedPes: 0,
  }
}

const COUNTERS = Object.keys(createDemuxerStats()) as (keyof DemuxerStats)[]

/** @returns sum of the counters of two demuxers */
export function addDemuxerStats(
  a: Readonly<DemuxerStats>,
  b: Readonly<DemuxerStats>,
): DemuxerStats {
  const sum = { ...a }
  for (const name of COUNTERS) sum[name] += b[name]
  return sum
}
