/**
 * From the bytes of a transport stream to the PES units of one program (ISO/IEC 13818-1 2.4).
 *
 * ```
 * bytes ─► PacketSync ─► PID ─┬─► SectionAssembler ─┬─► ProgramSelector ─► which PIDs are carried
 *                             │                     └─► splice
 *                             └─► PesAssembler ─► ElementaryStream ─► unit
 * ```
 *
 * @module
 */
import { crc32Mpeg2 } from '../../binary/crc32.ts'
import type { DemuxerOutput } from './demuxer-output.ts'
import { DemuxerStats } from './demuxer-stats.ts'
import { ElementaryStream } from './elementary-stream.ts'
import { isSameLayout } from './layout.ts'
import {
  hasTransportError,
  isScrambled,
  isUnitStart,
  NULL_PID,
  PACKET_BYTES,
  PAT_PID,
  payloadOffset,
  readPid,
} from '../packet.ts'
import { PacketSync, type PacketRun } from './packet-sync.ts'
import { PAT_TABLE_ID } from '../psi/pat.ts'
import { PMT_TABLE_ID, type ProgramMap } from '../psi/pmt.ts'
import type { ProgramChoice } from '../program-choice.ts'
import { ProgramSelector } from './program-selector.ts'
import { layRoutes, type Route } from './route.ts'
import { decodeSection } from '../psi/section.ts'
import { SectionHistory } from '../psi/section-history.ts'
import {
  decodeSpliceInfo,
  isEncryptedSplice,
  SPLICE_INFO_TABLE_ID,
  type SpliceInfo,
} from '../psi/splice-info.ts'
import { describeTrack } from '../psi/stream-type.ts'
import { TimestampUnwrapper } from '../timestamps.ts'
import type { Program } from '../track.ts'

/** Bytes of transport packets held in open PES packets; a frame of 4K video at 80 Mbit/s has 2 MB. */
const MAX_OPEN_BYTES = 8 * 1024 * 1024

/** Transport packets that an encoder puts into one SRT packet: 7 x 188 = 1316 bytes fit a usual MTU. */
const PACKETS_PER_PAYLOAD = 7

/** Lost packets that a continuity counter of 4 bits may not notice. */
const COUNTER_CYCLE = 16

/**
 * `push` bytes as they arrive, `gap` where some are missing before the next push, `end` once after the last. Nothing
 * that arrives throws: what cannot be used is dropped and counted in `stats`.
 *
 * Pushed buffers are kept, not copied, until the units that have packets in them are complete; units are views into
 * them.
 */
export class Demuxer {
  readonly #stats = new DemuxerStats()
  readonly #sync = new PacketSync(this.#stats)
  readonly #selector: ProgramSelector
  readonly #timestamps = new TimestampUnwrapper()
  readonly #splices = new SectionHistory()
  /** By PID. */
  #routes = new Map<number, Route>()
  /** Tracks of the program by PID. */
  #streams = new Map<number, ElementaryStream>()
  /** Those with an open PES that began under the program before: it still leaves under that one. */
  #predating = new Set<ElementaryStream>()
  #program: Program | undefined
  /** The program last put out. */
  #announced: Program | undefined
  #openBytes = 0

  /** @param options.program  which to carry; the first that has video unless told */
  constructor({ program = 'first' }: { readonly program?: ProgramChoice } = {}) {
    this.#selector = new ProgramSelector(program, this.#stats)
    this.#updateRoutes()
  }

  get stats(): Readonly<DemuxerStats> {
    return this.#stats
  }

  /** The program being carried; undefined until a PAT and a PMT were seen. */
  get program(): Program | undefined {
    return this.#program
  }

  /** Numbers of the programs that the PAT lists, carried or not; empty before the first. */
  get programNumbers(): readonly number[] {
    return this.#selector.listed
  }

  /** @param bytes  any length, beginning anywhere; not to be changed afterwards */
  push(bytes: Buffer): DemuxerOutput[] {
    const outputs: DemuxerOutput[] = []
    for (const run of this.#sync.push(bytes)) this.#demuxRun(run, outputs)
    return outputs
  }

  /**
   * Bytes were lost before the next push: the rest of a packet with them. Continuity counters find what is damaged as
   * long as they cannot have come round; beyond that every open PES is.
   *
   * @param lostPackets  SRT data packets
   */
  gap(lostPackets: number): void {
    this.#sync.reset()
    const countersTell = lostPackets * PACKETS_PER_PAYLOAD < COUNTER_CYCLE
    for (const { sections, stream } of this.#routes.values()) {
      stream?.pes.handleGap()
      if (countersTell) continue
      sections?.reset()
      stream?.pes.handleLoss()
    }
  }

  /** @returns what was still open; a PES that lacks bytes, as far as one can tell, is damaged */
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
    if (route === undefined) {
      if (pid === NULL_PID) stats.nullPackets++
      else stats.unusedPackets++
      return
    }
    if (isScrambled(bytes, at)) {
      stats.scrambledPackets++
      return
    }
    const payloadAt = payloadOffset(bytes, at)
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
    } else stats.unusedPackets++
  }

  /** An adaptation field alone, sent for its PCR; within a PES it stays in its place. */
  #handleEmptyPacket(
    pid: number,
    stream: ElementaryStream | undefined,
    bytes: Buffer,
    at: number,
    outputs: DemuxerOutput[],
  ): void {
    if (stream?.pes.open === true) {
      stream.pes.appendEmpty(bytes, at)
      this.#countOpenBytes()
    } else if (pid === this.#program?.pcrPid) {
      outputs.push({ type: 'packets', pid, chunks: [bytes.subarray(at, at + PACKET_BYTES)] })
    } else this.#stats.unusedPackets++
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
      complete = pes.start(bytes, at, payloadAt)
      if (!pes.open) {
        this.#stats.malformedPes++
        return
      }
    } else if (pes.open) {
      complete = pes.append(bytes, at, payloadAt)
    } else {
      this.#stats.orphanPackets++
      pes.handleOrphan()
      return
    }
    this.#countOpenBytes()
    if (complete && pes.open) this.#release(stream, outputs)
  }

  /** One more packet is held. If that is too much, the largest PES is dropped: the one that does not end. */
  #countOpenBytes(): void {
    this.#openBytes += PACKET_BYTES
    if (this.#openBytes <= MAX_OPEN_BYTES) return
    const { pes } = [...this.#streams.values()].reduce((a, b) =>
      a.pes.sizeBytes >= b.pes.sizeBytes ? a : b,
    )
    this.#openBytes -= pes.sizeBytes
    pes.take()
    this.#stats.oversizedPes++
  }

  /** Releases what is open, though its end was not seen. */
  #flush(stream: ElementaryStream, outputs: DemuxerOutput[]): void {
    if (!stream.pes.open) return
    if (stream.pes.truncated) stream.pes.handleLoss()
    this.#release(stream, outputs)
  }

  #release(stream: ElementaryStream, outputs: DemuxerOutput[]): void {
    const trackBefore = stream.track
    this.#openBytes -= stream.pes.sizeBytes
    const unit = stream.takeUnit()
    const predating = this.#predating.delete(stream)
    if (stream.track !== trackBefore) this.#updateProgram()
    if (!predating || stream.track !== trackBefore) this.#announce(outputs)
    if (unit !== undefined) outputs.push({ type: 'unit', unit })
    if (this.#predating.size === 0) this.#announce(outputs)
  }

  #handleSection(pid: number, section: Buffer, outputs: DemuxerOutput[]): void {
    const isSplice = section[0] === SPLICE_INFO_TABLE_ID
    const fields = decodeSection(section)
    if (fields === undefined && !isSplice) return
    this.#stats.sections++
    this.#stats.sectionBytes += section.length
    if (crc32Mpeg2(section) !== 0) {
      this.#stats.psiCrcErrors++
      return
    }
    if (isSplice) this.#handleSplice(section, outputs)
    if (fields?.current !== true) return
    if (pid === PAT_PID && fields.tableId === PAT_TABLE_ID) {
      this.#stats.patSections++
      if (this.#selector.handlePat(fields)) this.#updateRoutes()
    } else if (pid !== PAT_PID && fields.tableId === PMT_TABLE_ID && fields.sectionNumber === 0) {
      this.#stats.pmtSections++
      const map = this.#selector.handlePmt(pid, fields.extension, fields.body)
      if (map !== undefined) this.#carry(map, outputs)
    }
  }

  #handleSplice(section: Buffer, outputs: DemuxerOutput[]): void {
    this.#stats.spliceSections++
    if (isEncryptedSplice(section)) {
      this.#stats.encryptedSplices++
      return
    }
    if (this.#splices.push(section, this.#timestamps.latest?.dtsTicks ?? 0)) return
    const splice = decodeSpliceInfo(section)
    if (splice === undefined) {
      this.#stats.malformedSplices++
      return
    }
    outputs.push({ type: 'splice', splice: this.#unwrap(splice) })
  }

  #unwrap(splice: SpliceInfo): SpliceInfo {
    const { ptsTicks } = splice
    if (ptsTicks === undefined) return splice
    return { ...splice, ptsTicks: this.#timestamps.unwrap(ptsTicks, ptsTicks).ptsTicks }
  }

  /** Makes this the program that is carried. Streams that go on keep their open PES; the others are flushed. */
  #carry(map: ProgramMap, outputs: DemuxerOutput[]): void {
    const streams = new Map<number, ElementaryStream>()
    for (const entry of map.streams) {
      const track = describeTrack(entry)
      const known = this.#streams.get(track.pid)
      const goesOn = known?.goesOnAs(track) === true
      streams.set(
        track.pid,
        goesOn ? known : new ElementaryStream(track, this.#timestamps, this.#stats),
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
    this.#routes = layRoutes(this.#routes, {
      mapPids: this.#selector.mapPids,
      streams: this.#streams,
      pcrPid: this.#program?.pcrPid ?? NULL_PID,
    })
  }
}
