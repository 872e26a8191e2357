/**
 * Demultiplexes the bytes of a transport stream into the PES packets of one program (ISO/IEC 13818-1 2.4).
 *
 * ```
 * bytes ─► PacketSync ─► PID ─┬─► SectionAssembler ─► TableReader ─┬─► PIDs of the program
 *                             │                                    └─► splice
 *                             └─► PesAssembler ─► ElementaryStream ─► unit
 * ```
 *
 * @module
 */
import { createDemuxerStats, type DemuxerStats } from './demuxer-stats.ts'
import { ElementaryStream } from './elementary-stream.ts'
import { isSameLayout, type Program } from '../track.ts'
import {
  hasPayload,
  hasTransportError,
  isScrambled,
  isUnitStart,
  NULL_PID,
  PACKET_BYTES,
  payloadOffset,
  readPid,
} from '../packet.ts'
import { PacketSync, type PacketRun } from './packet-sync.ts'
import type { ProgramMap } from '../psi/pmt.ts'
import type { ProgramChoice } from '../program-choice.ts'
import { createRoutes, type Route } from './route.ts'
import { describeTrack } from '../psi/describe-track.ts'
import { TableReader } from './table-reader.ts'
import { TICKS_PER_SEC, type Times, TimestampUnwrapper } from '../timestamps.ts'
import type { SpliceInfo } from '../psi/splice-info.ts'
import type { PesUnit } from '../pes-unit.ts'

/** Maximum size of all transport packets held in open PES packets; a key frame of 4K video at 80 Mbit/s has 2 MB. */
const MAX_OPEN_BYTES = 8 * 1024 * 1024

/**
 * Maximum size of the transport packets of an open PES packet of audio. Video alone may leave its length open (2.4.3.7), so
 * that of audio has at most 65,541 bytes: 0.7 s of AAC or LATM at 750 kbit/s, which is what 8 channels take, or 85 ms of
 * E-AC-3 at its maximum of 6 Mbit/s. As much again is for adaptation fields. PCM is carried as data, without this limit.
 */
const MAX_AUDIO_BYTES = 128 * 1024

/** Number of transport packets in one SRT packet of a typical encoder: 1316 bytes fit an Ethernet frame. */
const PACKETS_PER_PAYLOAD = 7

/** Media of the audio for which an open PES packet of video that seems to be complete waits for the next one. */
const MAX_OPEN_TICKS = 1 * TICKS_PER_SEC

/** Number of values of the 4-bit continuity counter: it does not show the loss of 16 packets of a PID. */
const COUNTER_VALUES = 16

/**
 * Outputs, in order of completion.
 *
 * - `program`: describes the PES packets that follow. Emitted when a track appears, vanishes or changes, and when the
 *   bitstream parameters of a track become known or change. `layoutChanged` is true when PIDs, stream types, codec,
 *   video size, sample rate or channels differ from the previous program, so that players need an EXT-X-DISCONTINUITY.
 *   It is false when parameters only become known, and for the first program of a demuxer.
 * - `header`: the times of a video PES packet that has begun, long before it is complete if its length is unbounded.
 *   A `unit` with these times follows, unless the PES packet is dropped. None for video that is cut anew into frames.
 * - `unit`: a complete PES packet, as sent or made of a frame.
 * - `packets`: transport packets between PES packets that segments need as well: PCR-only packets of the PCR PID.
 * - `splice`: a splice information section, emitted on arrival, usually before its splice time; repetitions are
 *   dropped.
 */
export type DemuxerOutput =
  | { readonly type: 'program'; readonly program: Program; readonly layoutChanged: boolean }
  | { readonly type: 'header'; readonly pid: number; readonly times: Times }
  | { readonly type: 'unit'; readonly unit: PesUnit }
  | { readonly type: 'packets'; readonly pid: number; readonly chunks: readonly Buffer[] }
  | { readonly type: 'splice'; readonly splice: SpliceInfo }

/** Options of a demuxer. */
export interface DemuxerOptions {
  /** Program to carry; default: the first one with video. */
  readonly program?: ProgramChoice
}

/**
 * Calling order: `push` bytes as they arrive, `gap` when bytes were lost before the next push, `end` once after the
 * last. No input throws: packets that cannot be used are dropped and counted in `stats`.
 *
 * Pushed buffers are retained, not copied, until the PES packets in them are complete. Output chunks are views of them.
 */
export class Demuxer {
  readonly #stats = createDemuxerStats()
  readonly #sync = new PacketSync(this.#stats)
  readonly #timestamps = new TimestampUnwrapper()
  readonly #tables: TableReader
  /** Destinations of packets, by PID. */
  #routes = new Map<number, Route>()
  /** Elementary streams of the program, by PID. */
  #streams = new Map<number, ElementaryStream>()
  /** Streams whose open PES packet began before the latest PMT change and is output under the old program. */
  #predating = new Set<ElementaryStream>()
  #program: Program | undefined
  /** Program of the latest `program` output. */
  #announced: Program | undefined
  /** Bytes of transport packets held in open PES packets. */
  #openBytes = 0
  /** Highest DTS of audio since it stepped back. */
  #audioTicks = -Infinity

  constructor({ program = 'first' }: DemuxerOptions = {}) {
    this.#tables = new TableReader(program, this.#timestamps, this.#stats)
    this.#updateRoutes()
  }

  /** Counters of packets, losses and damage. */
  get stats(): Readonly<DemuxerStats> {
    return this.#stats
  }

  /** Carried program; undefined until its PMT has arrived. */
  get program(): Program | undefined {
    return this.#program
  }

  /** Size of the transport packets held in open PES packets. */
  get openBytes(): number {
    return this.#openBytes
  }

  /** Numbers of all programs in PAT order; empty before the first PAT. */
  get programNumbers(): readonly number[] {
    return this.#tables.programNumbers
  }

  /**
   * Takes bytes of the transport stream, and returns what they complete.
   *
   * @param bytes  any length, at any packet offset; must not be changed afterwards
   */
  push(bytes: Buffer): DemuxerOutput[] {
    const outputs: DemuxerOutput[] = []
    for (const run of this.#sync.push(bytes)) this.#demuxRun(run, outputs)
    return outputs
  }

  /**
   * Reports bytes lost before the next push. After a short loss the continuity counters show which PIDs are affected;
   * after one that could wrap a counter, every open PES packet counts as damaged.
   *
   * @param lostPackets  number of SRT data packets
   */
  gap(lostPackets: number): void {
    this.#sync.reset()
    const isShort = lostPackets * PACKETS_PER_PAYLOAD < COUNTER_VALUES
    for (const { continuity, sections, stream } of this.#routes.values()) {
      continuity.handleGap()
      stream?.pes.handleGap()
      if (isShort) continue
      sections?.reset()
      stream?.pes.handleLoss()
    }
  }

  /** @returns outputs for the PES packets that were still open; one that lacks bytes, as far as can be seen, is marked damaged */
  end(): DemuxerOutput[] {
    const outputs: DemuxerOutput[] = []
    for (const run of this.#sync.end()) this.#demuxRun(run, outputs)
    for (const stream of this.#streams.values()) this.#flush(stream, outputs)
    this.#announce(outputs)
    return outputs
  }

  #demuxRun({ bytes, start, end, stride }: PacketRun, outputs: DemuxerOutput[]): void {
    for (let at = start; at < end; at += stride) this.#demuxPacket(bytes, at, outputs)
  }

  #demuxPacket(bytes: Buffer, at: number, outputs: DemuxerOutput[]): void {
    const stats = this.#stats
    stats.packets++
    if (hasTransportError(bytes, at)) {
      stats.transportErrors++
      return
    }
    const pid = readPid(bytes, at)
    const route = this.#routes.get(pid)
    // Null packets, and PIDs outside the carried program.
    if (route === undefined) return
    if (isScrambled(bytes, at)) {
      stats.scrambledPackets++
      return
    }
    const payloadAt = payloadOffset(bytes, at)
    if (payloadAt === at + PACKET_BYTES || !hasPayload(bytes, at)) {
      route.continuity.checkEmpty(bytes, at)
    }
    if (payloadAt === undefined) {
      stats.malformedPackets++
      return
    }
    if (payloadAt === at + PACKET_BYTES) {
      this.#handleEmptyPacket(pid, route.stream, bytes, at, outputs)
      return
    }
    const verdict = route.continuity.check(bytes, at, payloadAt)
    if (verdict === 'duplicate') {
      stats.duplicatePackets++
      return
    }
    if (verdict === 'lost') {
      stats.continuityErrors++
      route.sections?.reset()
      route.stream?.pes.handleLoss()
    }
    if (route.stream !== undefined) this.#pushPes(route.stream, bytes, at, payloadAt, outputs)
    else if (route.sections !== undefined) {
      const payload = bytes.subarray(payloadAt, at + PACKET_BYTES)
      const sections = route.sections.push(payload, isUnitStart(bytes, at))
      for (const section of sections) this.#handleSection(pid, section, outputs)
    }
  }

  /** Adds a PCR-only packet to the open PES packet of its PID. Without an open one, outputs it if on the PCR PID. */
  #handleEmptyPacket(
    pid: number,
    stream: ElementaryStream | undefined,
    bytes: Buffer,
    at: number,
    outputs: DemuxerOutput[],
  ): void {
    if (stream?.pes.open === true) {
      stream.pes.appendEmpty(bytes, at)
      this.#holdPacket(stream)
    } else if (pid === this.#program?.pcrPid) {
      outputs.push({ type: 'packets', pid, chunks: [bytes.subarray(at, at + PACKET_BYTES)] })
    }
  }

  #pushPes(
    stream: ElementaryStream,
    bytes: Buffer,
    at: number,
    payloadAt: number,
    outputs: DemuxerOutput[],
  ): void {
    const { pes } = stream
    let complete = false
    if (isUnitStart(bytes, at)) {
      if (pes.open) this.#release(stream, outputs)
      complete = pes.start(bytes, at, payloadAt, this.#stats.packets - 1)
      if (!pes.open) {
        this.#stats.malformedPes++
        return
      }
      const times = stream.readTimes(bytes.subarray(payloadAt, at + PACKET_BYTES))
      if (times !== undefined) outputs.push({ type: 'header', pid: stream.track.pid, times })
    } else if (pes.open) {
      complete = pes.append(bytes, at, payloadAt)
    } else {
      this.#stats.orphanPackets++
      pes.handleOrphan()
      return
    }
    this.#holdPacket(stream)
    stream.besideTicks = this.#audioTicks
    if (!complete || !pes.open) return
    this.#release(stream, outputs)
    if (stream.track.kind === 'audio') this.#releaseWaiting(outputs)
  }

  /** Counts a held packet. Above a limit, drops this or the largest open PES packet, whose end was probably lost. */
  #holdPacket(stream: ElementaryStream): void {
    this.#openBytes += PACKET_BYTES
    const isLong = stream.track.kind === 'audio' && stream.pes.sizeBytes > MAX_AUDIO_BYTES
    if (!isLong && this.#openBytes <= MAX_OPEN_BYTES) return
    const { pes } = isLong
      ? stream
      : [...this.#streams.values()].reduce((a, b) => (a.pes.sizeBytes >= b.pes.sizeBytes ? a : b))
    this.#openBytes -= pes.sizeBytes
    pes.take()
    pes.handleLoss()
    this.#stats.oversizedPes++
  }

  /** Outputs the open PES packet, if any, as the last of its stream; damaged if it lacks bytes. */
  #flush(stream: ElementaryStream, outputs: DemuxerOutput[]): void {
    const { pes } = stream
    // Packets may be lost before the next payload: it does not prove that the length before was wrong.
    if (pes.truncated || !pes.open) pes.handleLoss()
    if (pes.open) this.#release(stream, outputs)
    this.#output(stream, stream.flushUnits(), outputs)
  }

  #release(stream: ElementaryStream, outputs: DemuxerOutput[]): void {
    this.#openBytes -= stream.pes.sizeBytes
    const predating = this.#predating.delete(stream)
    this.#output(stream, stream.takeUnits(), outputs, predating)
    if (this.#predating.size === 0) this.#announce(outputs)
  }

  #output(
    stream: ElementaryStream,
    units: Iterable<PesUnit>,
    outputs: DemuxerOutput[],
    predating = false,
  ): void {
    let trackBefore = stream.track
    for (const unit of units) {
      if (stream.track !== trackBefore) this.#updateProgram()
      if (!predating || stream.track !== trackBefore) this.#announce(outputs)
      trackBefore = stream.track
      outputs.push({ type: 'unit', unit })
      if (unit.track.kind === 'audio') this.#noteAudio(unit)
    }
  }

  #noteAudio({ dtsTicks }: PesUnit): void {
    const isBack = dtsTicks < this.#audioTicks - TICKS_PER_SEC
    if (isBack || dtsTicks > this.#audioTicks) this.#audioTicks = dtsTicks
  }

  /** Ends PES packets of video without a length that no other one has followed for long: the video pauses. */
  #releaseWaiting(outputs: DemuxerOutput[]): void {
    for (const stream of this.#streams.values()) {
      const { pes, track, besideTicks } = stream
      if (track.kind !== 'video' || !pes.open || pes.truncated) continue
      const waitTicks = Number.isFinite(besideTicks) ? this.#audioTicks - besideTicks : 0
      if (waitTicks > MAX_OPEN_TICKS) this.#release(stream, outputs)
    }
  }

  #handleSection(pid: number, section: Buffer, outputs: DemuxerOutput[]): void {
    const change = this.#tables.push(pid, section)
    if (change === undefined) return
    if (change.type === 'program') this.#carry(change.map, outputs)
    else if (change.type === 'splice') outputs.push(change)
    else this.#updateRoutes()
  }

  /** Changes to the program of this map. Outputs the open PES packets of streams that do not continue. */
  #carry(map: ProgramMap, outputs: DemuxerOutput[]): void {
    const streams = new Map<number, ElementaryStream>()
    for (const entry of map.streams) {
      const track = describeTrack(entry)
      const known = this.#streams.get(track.pid)
      const continues = known?.continueAs(track) === true
      streams.set(
        track.pid,
        continues ? known : new ElementaryStream(track, this.#timestamps, this.#stats),
      )
    }
    for (const [pid, stream] of this.#streams) {
      if (streams.get(pid) !== stream) this.#flush(stream, outputs)
    }
    this.#streams = streams
    this.#predating = new Set([...streams.values()].filter(({ pes }) => pes.open))
    this.#program = { programNumber: map.programNumber, pcrPid: map.pcrPid, tracks: [] }
    this.#updateProgram()
    this.#updateRoutes()
    if (this.#predating.size === 0) this.#announce(outputs)
  }

  #updateProgram(): void {
    if (this.#program === undefined) return
    const tracks = [...this.#streams.values()].map(({ track }) => track)
    this.#program = { ...this.#program, tracks }
  }

  #announce(outputs: DemuxerOutput[]): void {
    const program = this.#program
    if (program === undefined || program === this.#announced) return
    const layoutChanged = this.#announced !== undefined && !isSameLayout(this.#announced, program)
    this.#announced = program
    outputs.push({ type: 'program', program, layoutChanged })
  }

  #updateRoutes(): void {
    this.#routes = createRoutes(this.#routes, {
      mapPids: this.#tables.mapPids,
      streams: this.#streams,
      pcrPid: this.#program?.pcrPid ?? NULL_PID,
    })
  }
}
