/**
 * CPU budget of a stream's media. Clean media costs about 2.3 µs per transport packet from datagram to segment, of
 * which 0.4 µs are after SRT. Hostile media may cost 2.3 µs more, so that a stream costs at most twice as much.
 * Payloads above the budget are dropped; an encoder that stays above it is to be disconnected.
 *
 * Cost is counted instead of timed: the same bytes cost the same on every machine, however busy, and garbage collection is
 * charged to nobody. The unit is the nominal microsecond, measured with `npm run bench -- media-cost` on a core of 2025. A
 * slower core is slower for clean media too.
 *
 * The budget belongs to the stream and not to the connection: reconnecting does not reset it.
 *
 * @module
 */
import type { WarningFact } from '../diagnosis/warnings.ts'
import type { Packager, PackagerOutput } from '../hls/packager.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import { PACKET_BYTES } from '../mpegts/packet.ts'

const US_PER_BYTE = 2.7 / PACKET_BYTES

/** Fixed part of the budget, 1 % of a core: 24 renditions at the lowest bitrates take half of it. */
const US_PER_SEC = 10_000

/** Maximum saved budget, 0.1 s of CPU time: enough to start 24 renditions, or for the burst after an outage. */
const MAX_BALANCE_US = 100_000

/** Balance above which dropping ends: enough for the media that follows to be contiguous. */
const REOPENING_US = 20_000

/** Time without a drop after which the next drop starts a new period of dropping. */
const PAUSE_US = 5_000_000

const DISCONNECT_AFTER_US = 10_000_000

/** Calling order: `admit` each payload, then `spend` its cost. Sans-IO: times are microseconds of a monotonic clock. */
export class WorkBudget {
  #balanceUs = MAX_BALANCE_US
  #filledUs: number
  #open = true
  #spentUs = 0
  #dropped = 0
  #droppedBefore = 0
  #droppingSinceUs = -Infinity
  #droppedUs = -Infinity

  constructor(nowUs: number) {
    this.#filledUs = nowUs
  }

  /** Number of dropped payloads. */
  get dropped(): number {
    return this.#dropped
  }

  /** Cost so far, in nominal microseconds. */
  get spentUs(): number {
    return this.#spentUs
  }

  /** Balance in nominal microseconds; negative if more was spent than earned. */
  get balanceUs(): number {
    return this.#balanceUs
  }

  /** @returns whether to demux the payload; otherwise it counts as dropped */
  admit(sizeBytes: number, nowUs: number): boolean {
    const earnedUs = ((nowUs - this.#filledUs) * US_PER_SEC) / 1e6 + sizeBytes * US_PER_BYTE
    this.#filledUs = nowUs
    this.#balanceUs = Math.min(MAX_BALANCE_US, this.#balanceUs + earnedUs)
    this.#open = this.#balanceUs > (this.#open ? 0 : REOPENING_US)
    if (this.#open) return true
    if (nowUs - this.#droppedUs > PAUSE_US) {
      this.#droppingSinceUs = nowUs
      this.#droppedBefore = this.#dropped
    }
    this.#dropped++
    this.#droppedUs = nowUs
    return false
  }

  /** @param workUs  nominal microseconds */
  spend(workUs: number): void {
    this.#balanceUs -= workUs
    this.#spentUs += workUs
  }

  /** Whether the current period of dropping has lasted 10 s: the encoder is to be disconnected. */
  isExhausted(nowUs: number): boolean {
    const lastedUs = this.#droppedUs - this.#droppingSinceUs
    return lastedUs >= DISCONNECT_AFTER_US && nowUs - this.#droppedUs <= PAUSE_US
  }

  /** Ends the current period of dropping, for a new encoder. */
  restart(): void {
    this.#droppedUs = -Infinity
  }

  /** Facts about the current period of dropping; none once 5 s have passed since its last drop. */
  factsAt(nowUs: number): readonly WarningFact[] {
    if (nowUs - this.#droppedUs > PAUSE_US) return []
    return [{ code: 'INGEST_TOO_COSTLY', dropped: this.#dropped - this.#droppedBefore }]
  }
}

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
  foundNals: 0.5,
  addedPackets: 1.5,
  splitPes: 2,
  splitFrames: 5,
  triedHeaders: 0.01,
  latmFrames: 1,
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

/** CPU cost of a PES packet that is made anew, as on another clock, and of each of its transport packets. */
const MADE_PES_US = 1
const MADE_PACKET_US = 0.2

/** Further CPU cost of a PES packet of silence, or of video that is repeated. */
const INSERTED_PES_US = 3

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
    stats.foundNals * COUNTER_US.foundNals +
    stats.splitPes * COUNTER_US.splitPes +
    stats.splitFrames * COUNTER_US.splitFrames +
    stats.addedPackets * COUNTER_US.addedPackets +
    stats.triedHeaders * COUNTER_US.triedHeaders +
    stats.latmFrames * COUNTER_US.latmFrames
  )
}

type SampleStats = Packager['sampleStats']

/** CPU cost of each event that a counter of the samples of CMAF counts. */
const SAMPLE_US = {
  frames: 2,
  nalUnits: 0.3,
  parameterSets: 1.5,
  candidates: 0.08,
  samples: 2,
  initSegments: 50,
} as const satisfies Partial<Record<keyof SampleStats, number>>

/** CPU cost of all samples so far, in nominal microseconds. */
export function workOfSamples(stats: SampleStats): number {
  return (
    stats.frames * SAMPLE_US.frames +
    stats.nalUnits * SAMPLE_US.nalUnits +
    stats.parameterSets * SAMPLE_US.parameterSets +
    stats.candidates * SAMPLE_US.candidates +
    stats.samples * SAMPLE_US.samples +
    stats.initSegments * SAMPLE_US.initSegments
  )
}

/** CPU cost of a rendition that looks for media to place, and of a copy of a PES packet that waits. */
const VISIT_US = 0.5
const COPY_US = 2

/** CPU cost of placing PES packets so far, in nominal microseconds. */
export function workOfPlacing({ visits, copies }: Packager['placingStats']): number {
  return visits * VISIT_US + copies * COPY_US
}

/** CPU cost of a demuxer output that `workOfStats` does not include, in nominal microseconds. */
export function workOfMedia(output: DemuxerOutput): number {
  if (output.type === 'program') return PROGRAM_US + output.program.tracks.length * TRACK_US
  if (output.type !== 'splice' || output.splice.command.type !== 'time-signal') return 0
  return output.splice.command.segmentations.length * SEGMENTATION_US
}

/** CPU cost of the outputs in place of one of the demuxer, in nominal microseconds. */
export function workOfInsertion(output: DemuxerOutput, outputs: readonly DemuxerOutput[]): number {
  const addedBytes = outputs.reduce((sum, each) => sum + sizeOf(each), 0) - sizeOf(output)
  const packetsUs = (Math.max(0, addedBytes) / PACKET_BYTES) * COUNTER_US.addedPackets
  const insertedUs = Math.max(0, outputs.length - 1) * INSERTED_PES_US + packetsUs
  return outputs.reduce((sum, each) => sum + workOfMaking(each, output), insertedUs)
}

function workOfMaking(made: DemuxerOutput, sent: DemuxerOutput): number {
  if (made.type !== 'unit' || (sent.type === 'unit' && made.unit === sent.unit)) return 0
  return MADE_PES_US + (made.unit.sizeBytes / PACKET_BYTES) * MADE_PACKET_US
}

function sizeOf(output: DemuxerOutput): number {
  return output.type === 'unit' ? output.unit.sizeBytes : 0
}

/** CPU cost of a packager output, in nominal microseconds. */
export function workOfPackaging({ type }: PackagerOutput): number {
  if (type === 'segment') return SEGMENT_US
  if (type === 'part') return PART_US
  if (type === 'date-range') return DATE_RANGE_US
  return type === 'renditions' ? RENDITIONS_US : 0
}
