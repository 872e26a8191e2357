/**
 * Facts about an MPEG-TS segment or part: the frames that the demuxer finds, and faults of its packets (ISO/IEC 13818-1
 * 2.4.3): sync bytes, order of tables and media, continuity counters, PES packets that are cut off.
 *
 * @module
 */
import { AUDIO_DECODERS } from '../../codec/audio-decoders.ts'
import { Demuxer, type DemuxerOutput } from '../../mpegts/demux/demuxer.ts'
import { decodePesHeader, isPesStart, readPesSize } from '../../mpegts/pes.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import {
  announcesDiscontinuity,
  hasPayload,
  hasTransportError,
  isUnitStart,
  NULL_PID,
  PACKET_BYTES,
  PAT_PID,
  payloadOffset,
  readContinuityCounter,
  readPid,
  SYNC_BYTE,
} from '../../mpegts/packet.ts'
import { decodePat } from '../../mpegts/psi/pat.ts'
import { decodeSection, SectionAssembler } from '../../mpegts/psi/section.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Track } from '../../mpegts/track.ts'
import { AudioFrames } from './audio.ts'
import { Faults, type CounterRange, type InspectedTrack, type MediaFacts } from './media-facts.ts'
import { MAX_LISTED_FRAMES, measureFrameRate, measureFrames, type Frame } from './frame-list.ts'

/** Maximum number of tracks that are looked at. */
const MAX_TRACKS = 16

/** Number of packets in a row whose sync bytes make a transport stream. */
const SYNC_PACKETS = 3

/** Whether bytes are a transport stream, perhaps with something before its first packet. */
export function isTransportStream(bytes: Buffer): boolean {
  for (let at = 0; at < Math.min(PACKET_BYTES, bytes.length); at++) {
    if (bytes[at] !== SYNC_BYTE) continue
    const packets = Math.min(SYNC_PACKETS, Math.floor((bytes.length - at) / PACKET_BYTES))
    const isSynced = (index: number) => bytes[at + index * PACKET_BYTES] === SYNC_BYTE
    if (packets > 0 && Array.from({ length: packets }, (_, i) => i).every(isSynced)) return true
  }
  return false
}

/** @param init  PAT and PMT of EXT-X-MAP */
export function inspectTransportStream(bytes: Buffer, init: Buffer | undefined): MediaFacts {
  const faults = new Faults()
  const demuxer = new Demuxer()
  const readers = new Map<number, TrackReader>()
  if (init !== undefined) demuxer.push(init)
  for (const output of [...demuxer.push(bytes), ...demuxer.end()]) {
    readOutput(output, readers, faults)
  }
  const { programNumbers: numbers } = demuxer
  if (numbers.length > 1) {
    faults.add(
      'programs',
      `the PAT has ${numbers.length} programs, ${numbers.slice(0, 4).join(', ')}`,
    )
  }
  const tracks = demuxer.program?.tracks ?? []
  const mediaPids = new Set(tracks.filter(({ kind }) => kind !== 'data').map(({ pid }) => pid))
  const mapPids = readMapPids(bytes)
  const context = { mediaPids, mapPids, hasInit: init !== undefined }
  const counters = scanPackets(bytes, context, faults)
  return {
    container: 'mpegts',
    sizeBytes: bytes.length,
    tracks: tracks
      .slice(0, MAX_TRACKS)
      .map((track) => (readers.get(track.pid) ?? new TrackReader(track)).describe(track)),
    counters,
    faults: faults.list,
  }
}

function readOutput(
  output: DemuxerOutput,
  readers: Map<number, TrackReader>,
  faults: Faults,
): void {
  if (output.type === 'program' && output.layoutChanged) {
    faults.add('change', 'the PMT or a bitstream changes tracks or format inside')
  }
  if (output.type !== 'unit') return
  const { track } = output.unit
  let reader = readers.get(track.pid)
  if (reader === undefined) {
    if (readers.size === MAX_TRACKS) return
    reader = new TrackReader(track)
    readers.set(track.pid, reader)
  }
  reader.push(output.unit)
}

/** @returns PIDs of the program maps in the first section of the PAT; empty without one */
function readMapPids(bytes: Buffer): ReadonlySet<number> {
  const assembler = new SectionAssembler()
  for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
    if (bytes[at] !== SYNC_BYTE || readPid(bytes, at) !== PAT_PID) continue
    const payload = bytes.subarray(payloadOffset(bytes, at) ?? at, at + PACKET_BYTES)
    const [section] = assembler.push(payload, isUnitStart(bytes, at))
    const fields = section && decodeSection(section)
    if (fields !== undefined) return new Set(decodePat(fields.body).map(({ mapPid }) => mapPid))
  }
  return new Set()
}

class TrackReader {
  readonly #audio: AudioFrames | undefined
  readonly #frames: Frame[] = []

  constructor({ codec }: Track) {
    const decode = AUDIO_DECODERS[codec]
    if (decode !== undefined) this.#audio = new AudioFrames(decode)
  }

  push(unit: PesUnit): void {
    const { ptsTicks, dtsTicks, payload, startsFrame, randomAccess, track } = unit
    if (this.#audio !== undefined) {
      this.#audio.push(payload, ptsTicks)
    } else if (startsFrame && this.#frames.length < MAX_LISTED_FRAMES) {
      const isKey = randomAccess && track.kind !== 'data'
      this.#frames.push({ ptsTicks, dtsTicks, durationTicks: undefined, isKey })
    }
  }

  /** @param track  as the demuxer knows it at the end */
  describe({ pid, kind, parameters }: Track): InspectedTrack {
    const frames = this.#audio?.frames ?? this.#frames
    const measured = kind === 'video' ? measureFrameRate(frames, TICKS_PER_SEC) : undefined
    const { codecString: codec, width, height, videoRange } = parameters ?? {}
    const { sampleRate, channels, frameRate = measured } = parameters ?? {}
    return {
      kind,
      codec,
      id: pid,
      ...(width !== undefined && { width }),
      ...(height !== undefined && { height }),
      ...(frameRate !== undefined && { frameRate }),
      ...(videoRange !== undefined && { videoRange }),
      ...(sampleRate !== undefined && { sampleRate }),
      ...(channels !== undefined && { channels }),
      ...measureFrames(frames, TICKS_PER_SEC, frameRate === undefined ? 0 : 1 / frameRate),
      ...(kind !== 'video' && { startsWithKeyFrame: true }),
    }
  }
}

/** Maximum share of null packets. */
const MAX_NULL_SHARE = 0.02

interface PidState {
  first: number
  last: number
  announced: boolean
  /** Offset of the previous packet with payload. */
  at: number
  /** Bytes of the open PES packet still to come; Infinity if its length is open or wrong. */
  missingBytes: number
}

interface ScanContext {
  /** PIDs of audio and video. */
  readonly mediaPids: ReadonlySet<number>
  /** PIDs of the program maps; empty without a PAT. */
  readonly mapPids: ReadonlySet<number>
  /** Whether PAT and PMT come from EXT-X-MAP. */
  readonly hasInit: boolean
}

/** @returns continuity counters by PID, up to the first packet without sync byte */
function scanPackets(
  bytes: Buffer,
  context: ScanContext,
  faults: Faults,
): ReadonlyMap<number, CounterRange> {
  const pids = new Map<number, PidState>()
  let nulls = 0
  let at = 0
  for (; at + PACKET_BYTES <= bytes.length && bytes[at] === SYNC_BYTE; at += PACKET_BYTES) {
    const pid = readPid(bytes, at)
    if (hasTransportError(bytes, at)) {
      faults.add('transport-error', `${namePacket(at, pid)} has transport_error_indicator set`)
    } else if (pid === NULL_PID) nulls++
    else scanPacket(bytes, at, pid, pids, context, faults)
  }
  if (bytes.length % PACKET_BYTES !== 0) {
    faults.add('sync', `the length is ${bytes.length} bytes, no multiple of ${PACKET_BYTES}`)
  } else if (at < bytes.length) {
    faults.add('sync', `byte ${at} is ${hex(bytes[at]!)}, not the sync byte 47`)
  }
  const packets = at / PACKET_BYTES
  if (nulls > packets * MAX_NULL_SHARE) {
    faults.add('null-packets', `${nulls} of ${packets} packets are null packets`)
  }
  for (const [pid, { missingBytes }] of pids) {
    if (!Number.isFinite(missingBytes) || missingBytes <= 0) continue
    faults.add('pes-cut', `the last PES packet of PID ${pid} lacks ${missingBytes} bytes`)
  }
  checkTables(context, pids, faults)
  return new Map(
    [...pids].map(([pid, { first, last, announced }]) => [pid, { first, last, announced }]),
  )
}

function scanPacket(
  bytes: Buffer,
  at: number,
  pid: number,
  pids: Map<number, PidState>,
  { mediaPids }: ScanContext,
  faults: Faults,
): void {
  const payloadAt = payloadOffset(bytes, at)
  if (payloadAt === undefined || !hasPayload(bytes, at)) return
  const counter = readContinuityCounter(bytes, at)
  const announced = announcesDiscontinuity(bytes, at)
  const known = pids.get(pid)
  if (known !== undefined) {
    const follows = counter === ((known.last + 1) & 15)
    if (!follows && isDuplicate(bytes, at, payloadAt, known)) return
    if (!follows && !announced) {
      const text = `${namePacket(at, pid)} has continuity counter ${counter} after ${known.last}`
      faults.add('continuity', text)
      known.missingBytes = Number.POSITIVE_INFINITY
    }
  }
  const state = known ?? { first: counter, last: 0, announced, at, missingBytes: Infinity }
  state.last = counter
  state.at = at
  pids.set(pid, state)
  if (mediaPids.has(pid)) scanPes(bytes, at, pid, payloadAt, state, known === undefined, faults)
}

function scanPes(
  bytes: Buffer,
  at: number,
  pid: number,
  payloadAt: number,
  state: PidState,
  isFirst: boolean,
  faults: Faults,
): void {
  const end = at + PACKET_BYTES
  if (!isUnitStart(bytes, at)) {
    if (isFirst) faults.add('pes-cut', `${namePacket(at, pid)} does not begin a PES packet`)
    state.missingBytes -= end - payloadAt
    return
  }
  if (!isPesStart(bytes, payloadAt) || payloadAt + 6 > end) return
  const sizeBytes = readPesSize(bytes, payloadAt)
  state.missingBytes = (sizeBytes ?? Number.POSITIVE_INFINITY) - (end - payloadAt)
  const header = decodePesHeader(bytes.subarray(payloadAt, end))
  if (header !== undefined && header.ptsTicks === undefined) {
    faults.add('pts', `the PES packet that begins in ${namePacket(at, pid)} has no PTS`)
  }
}

/** Whether a packet repeats the one before on its PID, which is allowed once (2.4.3.3). */
function isDuplicate(bytes: Buffer, at: number, payloadAt: number, { last, at: before }: PidState) {
  if (readContinuityCounter(bytes, at) !== last) return false
  const beforeAt = before + (payloadAt - at)
  return bytes.compare(bytes, payloadAt, at + PACKET_BYTES, beforeAt, before + PACKET_BYTES) === 0
}

function checkTables(
  { mediaPids, mapPids, hasInit }: ScanContext,
  pids: ReadonlyMap<number, unknown>,
  faults: Faults,
): void {
  if (hasInit) return
  if (!pids.has(PAT_PID)) return faults.add('tables', 'there is no PAT')
  if (![...mapPids].some((pid) => pids.has(pid))) return faults.add('tables', 'there is no PMT')
  const order = [...pids.keys()]
  const mapAt = order.findIndex((pid) => mapPids.has(pid))
  const mediaAt = order.findIndex((pid) => mediaPids.has(pid))
  if (mediaAt >= 0 && mediaAt < Math.max(mapAt, order.indexOf(PAT_PID))) {
    return faults.add('tables', `PID ${order[mediaAt]} comes before PAT and PMT`)
  }
  if (order[0] === PAT_PID && mapAt === 1) return
  const first = order.slice(0, 2).join(' and ')
  faults.add('table-order', `the first packets have PID ${first}; PAT and PMT come later`)
}

function namePacket(at: number, pid: number): string {
  return `packet ${at / PACKET_BYTES}, PID ${pid},`
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}
