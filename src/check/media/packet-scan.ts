/**
 * Transport packets of a segment or part, one by one: sync bytes, order of tables and media, continuity counters, and
 * PES packets that are cut off (ISO/IEC 13818-1 2.4.3).
 *
 * @module
 */
import {
  announcesDiscontinuity,
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
import { decodePesHeader, isPesStart, readPesSize } from '../../mpegts/pes.ts'
import type { Faults } from './faults.ts'
import type { CounterRange } from './inspected-media.ts'

/** Share of null packets that is worth a word. */
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

export interface ScanContext {
  /** PIDs of audio and video. */
  readonly mediaPids: ReadonlySet<number>
  /** PIDs of the program maps; empty without a PAT. */
  readonly mapPids: ReadonlySet<number>
  /** Whether PAT and PMT come from EXT-X-MAP. */
  readonly hasInit: boolean
}

/** @returns continuity counters by PID, up to the first packet without sync byte */
export function scanPackets(
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
      faults.add('transport-error', `${name(at, pid)} has transport_error_indicator set`)
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
  if (payloadAt === undefined || payloadAt === at + PACKET_BYTES) return
  const counter = readContinuityCounter(bytes, at)
  const announced = announcesDiscontinuity(bytes, at)
  const known = pids.get(pid)
  if (known !== undefined) {
    const follows = counter === ((known.last + 1) & 15)
    if (!follows && isDuplicate(bytes, at, payloadAt, known)) return
    if (!follows && !announced) {
      const text = `${name(at, pid)} has continuity counter ${counter} after ${known.last}`
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
    if (isFirst) faults.add('pes-cut', `${name(at, pid)} does not begin a PES packet`)
    state.missingBytes -= end - payloadAt
    return
  }
  if (!isPesStart(bytes, payloadAt) || payloadAt + 6 > end) return
  const sizeBytes = readPesSize(bytes, payloadAt)
  state.missingBytes = (sizeBytes ?? Number.POSITIVE_INFINITY) - (end - payloadAt)
  const header = decodePesHeader(bytes.subarray(payloadAt, end))
  if (header !== undefined && header.ptsTicks === undefined) {
    faults.add('pts', `the PES packet that begins in ${name(at, pid)} has no PTS`)
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

function name(at: number, pid: number): string {
  return `packet ${at / PACKET_BYTES}, PID ${pid},`
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}
