/** What a demuxer saw and what it dropped. Counters of packets, PES packets or bytes; none ever goes back. */
export class DemuxerStats {
  /** Transport packets, of whatever PID. */
  packets = 0
  /** Stuffing, dropped. */
  nullPackets = 0
  /** Of PIDs that the program does not name, or without anything to carry; dropped. */
  unusedPackets = 0
  /** How often the sync byte was not where it belongs. */
  lostSyncs = 0
  /** Bytes that belong to no packet, or to one that was cut by a loss. */
  skippedBytes = 0
  /** Packets that say of themselves that they are damaged; dropped. */
  transportErrors = 0
  /** Packets with scrambled payload; dropped. */
  scrambledPackets = 0
  /** Packets whose adaptation field does not fit; dropped. */
  malformedPackets = 0
  /** Jumps of a continuity counter that were not announced. */
  continuityErrors = 0
  /** Packets sent twice in a row; the second is dropped. */
  duplicatePackets = 0
  /** Payload whose PES start was not seen; dropped. */
  orphanPackets = 0
  /** Valid sections, repetitions included. */
  patSections = 0
  pmtSections = 0
  /** Sections of whatever table, with their bytes; not those of the wrong syntax. */
  sections = 0
  sectionBytes = 0
  /** Changes of PAT and PMT that came sooner after others than packets paid for; passed over. */
  unpaidTables = 0
  /** Sections whose checksum is wrong; dropped. */
  psiCrcErrors = 0
  /** Of splice information, valid ones, repetitions included. */
  spliceSections = 0
  /** Splice information that cannot be read; dropped. */
  encryptedSplices = 0
  malformedSplices = 0
  /** PES packets that left as units. */
  units = 0
  damagedUnits = 0
  /** NAL units that were read to learn what a unit is, and their bytes. */
  nalUnits = 0
  nalBytes = 0
  /** Transport packets by which units left larger than they came. */
  addedPackets = 0
  /** PES packets without a readable header; dropped. */
  malformedPes = 0
  /** PES packets without a PTS: they take the time of the one before, or are dropped where there is none. */
  pesWithoutPts = 0
  /** PES packets of LATM before its first configuration; dropped. */
  unconfiguredUnits = 0
  /** PES packets dropped because what is held open grew too large. */
  oversizedPes = 0
}
