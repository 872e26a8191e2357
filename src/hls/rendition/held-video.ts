/**
 * The last picture of video that stays away, repeated: players stand still where a track ends, and some do not go on.
 *
 * @module
 */
import { encodeH264Still } from '../../codec/h264-still.ts'
import { HAS_PAYLOAD, PACKET_BYTES, SYNC_BYTE, UNIT_START } from '../../mpegts/packet.ts'
import { packetizePes } from '../../mpegts/mux/pes-packetizer.ts'
import { shiftUnit } from '../../mpegts/mux/shift-unit.ts'
import { encodePesHeader } from '../../mpegts/pes.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Track } from '../../mpegts/track.ts'

/** Distance between the repetitions: that of usual parts. */
const STEP_TICKS = 0.2 * TICKS_PER_SEC

/** Number of bytes of a frame in which its first slice begins, unless it has long SEI messages. */
const HEAD_BYTES = 1024

const VIDEO_STREAM_ID = 0xe0
const DELIMITER = Buffer.from([0, 0, 0, 1, 0x09, 0xf0])
const START_CODE = Buffer.from([0, 0, 0, 1])

/** Inputs: `push` each PES packet of the video; `fill` while it stays away. */
export class HeldVideo {
  #track: Track | undefined
  /** Starts of the newest frame, and of the newest key frame. */
  #latest: Buffer | undefined
  #key: Buffer | undefined
  /** The picture; undefined before it is needed, and where none can be made. */
  #payload: Buffer | undefined
  #isMade = false
  /** DTS of the newest repetition. */
  #filledTicks = 0

  /** Track whose last picture is repeated now; undefined for none. */
  get track(): Track | undefined {
    return this.#payload && this.#track
  }

  push(unit: PesUnit): void {
    const { track, payload, ptsTicks, dtsTicks, randomAccess } = unit
    this.#track = track
    // A copy: a view would keep the whole frame.
    this.#latest = Buffer.from(payload.subarray(0, HEAD_BYTES))
    this.#filledTicks = dtsTicks
    this.#isMade = false
    this.#payload = undefined
    if (!randomAccess) return
    // Frames that are presented in another order than they are sent may come after the pause, for the time before it.
    this.#key = ptsTicks === dtsTicks ? this.#latest : undefined
  }

  /** @returns the frame before a pause, behind the repetitions of that before it */
  pushLate(unit: PesUnit): PesUnit {
    const lateTicks = this.#filledTicks + 1 - unit.dtsTicks
    this.push(unit)
    return lateTicks > 0 ? shiftUnit(unit, lateTicks) : unit
  }

  /** @returns repetitions of the last picture, up to a DTS; none for other video than H.264 without fields and B pictures */
  fill(untilTicks: number): PesUnit[] {
    const [track, latest, key] = [this.#track, this.#latest, this.#key]
    if (track?.codec !== 'h264' || latest === undefined || key === undefined) return []
    if (!this.#isMade) {
      const still = encodeH264Still(key, latest)
      this.#payload = still && Buffer.concat([DELIMITER, START_CODE, still])
      this.#isMade = true
    }
    const units: PesUnit[] = []
    const payload = this.#payload
    if (payload === undefined) return units
    while (this.#filledTicks + STEP_TICKS <= untilTicks) {
      this.#filledTicks += STEP_TICKS
      units.push(createUnit(track, payload, this.#filledTicks))
    }
    return units
  }
}

function createUnit(track: Track, payload: Buffer, ticks: number): PesUnit {
  const packet = Buffer.alloc(PACKET_BYTES)
  packet[0] = SYNC_BYTE
  packet.writeUInt16BE((UNIT_START << 8) | track.pid, 1)
  packet[3] = HAS_PAYLOAD
  const header = encodePesHeader(VIDEO_STREAM_ID, ticks, payload.length)
  const bytes = packetizePes(packet, Buffer.concat([header, payload]))
  return {
    track,
    chunks: [bytes],
    sizeBytes: bytes.length,
    payload,
    ptsTicks: ticks,
    dtsTicks: ticks,
    randomAccess: false,
    newParameters: false,
    gradualRefresh: false,
    decodableLeading: false,
    startsFrame: true,
    damaged: false,
  }
}
