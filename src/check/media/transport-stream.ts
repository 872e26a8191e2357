/**
 * Facts about an MPEG-TS segment or part: what the demuxer finds in it, and what its packets look like.
 *
 * @module
 */
import { Demuxer } from '../../mpegts/demux/demuxer.ts'
import type { DemuxerOutput } from '../../mpegts/demux/demuxer-output.ts'
import { elementaryBytes, findPesHeader } from '../../mpegts/pes.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import {
  isUnitStart,
  PACKET_BYTES,
  PAT_PID,
  payloadOffset,
  readPid,
  SYNC_BYTE,
} from '../../mpegts/packet.ts'
import { decodePat } from '../../mpegts/psi/pat.ts'
import { decodeSection, SectionAssembler } from '../../mpegts/psi/section.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Track } from '../../mpegts/track.ts'
import { AUDIO_DECODERS, AudioFrames } from './audio-frames.ts'
import { Faults } from './faults.ts'
import { MAX_FRAMES, measureFrameRate, measureFrames, type Frame } from './frame-list.ts'
import type { InspectedTrack, MediaFacts } from './inspected-media.ts'
import { scanPackets } from './packet-scan.ts'

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
    const { ptsTicks, dtsTicks, chunks, startsFrame, randomAccess, track } = unit
    if (this.#audio !== undefined) {
      const headerBytes = findPesHeader(chunks)?.sizeBytes ?? 0
      this.#audio.push(Buffer.concat([...elementaryBytes(chunks, headerBytes)]), ptsTicks)
    } else if (startsFrame && this.#frames.length < MAX_FRAMES) {
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
