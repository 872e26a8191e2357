/**
 * Video that stays away while audio goes on, as that of encoders with a variable frame rate. Players need both tracks all the
 * time, so the GOP so far is repeated with its frames one tick apart: its last picture stays, and decoders have what the next
 * frame refers to.
 *
 * ```
 * sent       I P P P                              P P …
 * published  I P P P        IPPP────IPPP────IPPP──P P …
 * ```
 *
 * @module
 */
import { closeGop } from '../../codec/close-gop.ts'
import { encodePes } from '../../mpegts/mux/pes-packetizer.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import { isSameTrackLayout, type Track } from '../../mpegts/track.ts'
import { MAX_STEP_TICKS } from '../cut/timeline.ts'

/** Media of the audio alone after which video stays away: tracks may arrive in turns, and video late. */
const AWAY_TICKS = 4 * TICKS_PER_SEC

/** Lateness of the video beside its audio that is known by now, above which it is waited for longer, and how much longer. */
const MIN_LATE_TICKS = 1.25 * TICKS_PER_SEC
const MAX_LATE_TICKS = 4 * TICKS_PER_SEC

/** Step of the video that is a pause, if there was as much audio beside it: longer ones are jumps of its clock to players. */
const MAX_UNHELD_TICKS = 2 * TICKS_PER_SEC

/** Duration of a repetition: short, so that a segment ends in time, but longer for what is large. */
const MIN_REPETITION_TICKS = 0.5 * TICKS_PER_SEC
const MAX_REPETITION_TICKS = 1 * TICKS_PER_SEC

/** Time by which the end of a repetition stays behind the audio: frames may come as late. */
const MARGIN_TICKS = 0.25 * TICKS_PER_SEC

/** Bounds of what is repeated in `MAX_REPETITION_TICKS`: 4 Mbit/s, and the frames of 2 s at 60 a second. */
const MAX_BYTES = 512 * 1024
const MAX_FRAMES = 128

/** Maximum number of repetitions at once: beside a PES packet of audio, and before a frame behind the longest wait. */
const MAX_REPETITIONS = 4
const MAX_RETURN_REPETITIONS = (AWAY_TICKS + MAX_LATE_TICKS) / MIN_REPETITION_TICKS

const VIDEO_STREAM_ID = 0xe0

const NOTHING = Buffer.alloc(0)

interface HeldPacket {
  /** Without its bytes. */
  readonly unit: PesUnit
  /** End of its payload in the memory of the GOP; it begins where that of the packet before ends. */
  readonly endBytes: number
}

/** Inputs: `describe` the video with each program, `push` each of its PES packets, `fill` with each one of the audio. */
export class HeldVideo {
  /** PES packets of the newest GOP, or of its key frame; empty for none that is repeated. */
  #gop: HeldPacket[] = []
  /** Whether that is the whole GOP: frames behind a repetition of its key frame alone cannot be decoded. */
  #isWhole = true
  /** Whether decoders begin anew with it; undefined until it is examined. */
  #isClosed: boolean | undefined
  /**
   * Copies of the payloads, in memory that the next GOP uses again. Payloads kept as they came would outlive the young generation
   * of the heap: those of 40 streams of 5 Mbit/s bring 1.5 times as many collections of the old one.
   */
  #memory = NOTHING
  /** DTS of the newest PES packet as sent. */
  #latestTicks = -Infinity
  #frameTicks = 0
  /** Highest PTS of the GOP. */
  #maxPtsTicks = 0
  /** DTS of the next repetition; undefined while the video is not held. */
  #nextTicks: number | undefined
  /** Whether the key frame was late, and so is not published before it is repeated. */
  #isUnseen = false
  /** Highest lateness so far. */
  #lateTicks = 0

  /** Size of the memory of the GOP. */
  get sizeBytes(): number {
    return this.#memory.length
  }

  /** Newest distance of two frames without a pause between them, in ticks of 90 kHz; 0 before the first. */
  get frameTicks(): number {
    return this.#frameTicks
  }

  /** Video that is held; undefined for none. */
  get track(): Track | undefined {
    return this.#nextTicks === undefined ? undefined : this.#gop[0]?.unit.track
  }

  /** Time since its newest PES packet, in ticks of 90 kHz; 0 for video that is not held. */
  get heldTicks(): number {
    return this.#nextTicks === undefined ? 0 : this.#nextTicks - this.#latestTicks
  }

  /** Takes a description of the track; undefined for none. Without a key frame in its format, nothing is repeated. */
  describe(track: Track | undefined): void {
    const [key] = this.#gop
    if (key === undefined || (track !== undefined && isSameTrackLayout(track, key.unit.track)))
      return
    this.#gop = []
    this.#nextTicks = undefined
  }

  /**
   * @param besideTicks  media of the audio since the PES packet before
   * @returns the PES packet, behind the repetitions up to it; none for one that is late and in the next repetition; undefined for
   *   one that is dropped
   */
  push(unit: PesUnit, besideTicks = 0): PesUnit[] | undefined {
    const { dtsTicks, randomAccess, damaged } = unit
    const isKey = randomAccess && !damaged
    const units = this.#endPause(dtsTicks, besideTicks)
    const nextTicks = this.#nextTicks
    if (nextTicks !== undefined) {
      if (!this.#isWhole && !isKey) return undefined
      if (dtsTicks >= this.#latestTicks && dtsTicks < nextTicks + this.#gop.length)
        return this.#pushLate(unit, isKey)
      const untilTicks = Math.min(dtsTicks, nextTicks + AWAY_TICKS)
      if (dtsTicks > nextTicks && this.#begins()) units.push(...this.#repeat(untilTicks, true))
      this.#nextTicks = undefined
    }
    this.#keep(unit, isKey)
    units.push(unit)
    return units
  }

  /**
   * @param aloneTicks  media of the audio since the latest PES packet of the video
   * @returns the repetitions that are due
   */
  fill(aloneTicks: number): PesUnit[] {
    const untilTicks = this.#latestTicks + aloneTicks - MARGIN_TICKS
    if (this.#nextTicks === undefined) {
      if (aloneTicks <= AWAY_TICKS + this.#lateTicks || !this.#begins()) return []
      const endTicks = this.#endTicks
      // Until it is repeated, nothing is late.
      if (endTicks + this.#repetitionTicks > untilTicks) return []
      this.#nextTicks = endTicks
    }
    return this.#repeatUntil(untilTicks, MAX_REPETITIONS)
  }

  /** Measures how late a frame is. @returns the repetitions before it, if it ends a pause that the audio beside it explains */
  #endPause(dtsTicks: number, besideTicks: number): PesUnit[] {
    const stepTicks = dtsTicks - this.#latestTicks
    const lateTicks = stepTicks < 0 ? 0 : besideTicks - stepTicks
    if (lateTicks > Math.max(this.#lateTicks, MIN_LATE_TICKS))
      this.#lateTicks = Math.min(lateTicks, MAX_LATE_TICKS)
    const isPause = stepTicks > MAX_UNHELD_TICKS && lateTicks > -MIN_LATE_TICKS
    if (!isPause || !this.#isWhole || !this.#begins()) return []
    this.#nextTicks ??= this.#endTicks
    return this.#repeatUntil(dtsTicks - MARGIN_TICKS, MAX_RETURN_REPETITIONS)
  }

  /** Keeps a frame whose time is repeated already. @returns it, if it is a key frame that cannot be repeated */
  #pushLate(unit: PesUnit, isKey: boolean): PesUnit[] {
    this.#keep(unit, isKey)
    if (!isKey) return []
    this.#isUnseen = this.#begins()
    if (this.#isUnseen) return []
    this.#nextTicks = undefined
    return [unit]
  }

  /** End of the GOP so far. */
  get #endTicks(): number {
    const lastTicks = Math.max(this.#latestTicks, this.#maxPtsTicks - this.#reorderTicks)
    return lastTicks + Math.max(this.#frameTicks, 1)
  }

  #repeatUntil(untilTicks: number, maxRepetitions: number): PesUnit[] {
    const stepTicks = this.#repetitionTicks
    const units: PesUnit[] = []
    for (let count = 0; count < maxRepetitions; count++) {
      const nextTicks = (this.#nextTicks ?? Infinity) + stepTicks
      if (nextTicks > untilTicks || !this.#begins()) break
      units.push(...this.#repeat(nextTicks))
    }
    return units
  }

  get #reorderTicks(): number {
    const [key] = this.#gop
    return key === undefined ? 0 : key.unit.ptsTicks - key.unit.dtsTicks
  }

  /** Number of PES packets of the key frame. */
  get #keyPackets(): number {
    const next = this.#gop.findIndex(({ unit }, index) => index > 0 && unit.startsFrame)
    return next === -1 ? this.#gop.length : next
  }

  /** Size of the payloads. */
  get #payloadBytes(): number {
    return this.#gop.at(-1)?.endBytes ?? 0
  }

  get #repetitionTicks(): number {
    const share = Math.max(this.#payloadBytes / MAX_BYTES, this.#gop.length / MAX_FRAMES)
    return Math.max(MIN_REPETITION_TICKS, Math.ceil(share * MAX_REPETITION_TICKS))
  }

  #keep(unit: PesUnit, isKey: boolean): void {
    const { dtsTicks, ptsTicks, payload, startsFrame } = unit
    const stepTicks = dtsTicks - this.#latestTicks
    if (stepTicks > 0 && stepTicks <= MAX_STEP_TICKS) this.#frameTicks = stepTicks
    this.#latestTicks = dtsTicks
    const key = this.#gop[0]?.unit
    if (isKey && startsFrame) {
      this.#gop = []
      this.#isWhole = true
      this.#isClosed = undefined
      this.#maxPtsTicks = ptsTicks
    } else if (key === undefined) return
    this.#maxPtsTicks = Math.max(this.#maxPtsTicks, ptsTicks)
    // Frames that are presented before the key frame may refer to the GOP before it, and none behind it to them.
    if (!this.#isWhole || (key !== undefined && !isKey && ptsTicks < key.ptsTicks)) return
    const endBytes = this.#payloadBytes + payload.length
    if (this.#gop.length < MAX_FRAMES && endBytes <= MAX_BYTES) {
      this.#write(payload, endBytes)
      this.#gop.push({ unit: { ...unit, chunks: [], payload: NOTHING }, endBytes })
      return
    }
    this.#isWhole = false
    const keyPackets = this.#keyPackets
    const isInKeyFrame = keyPackets === this.#gop.length && !startsFrame
    this.#gop.length = isInKeyFrame ? 0 : keyPackets
  }

  /** Copies a payload to `endBytes` of the memory, which is doubled where it is too small. */
  #write(payload: Buffer, endBytes: number): void {
    const fromBytes = endBytes - payload.length
    if (endBytes > this.#memory.length) {
      const sizeBytes = Math.max(2 * this.#memory.length, endBytes)
      const memory = Buffer.allocUnsafeSlow(Math.min(MAX_BYTES, sizeBytes))
      this.#memory.copy(memory, 0, 0, fromBytes)
      this.#memory = memory
    }
    payload.copy(this.#memory, fromBytes)
  }

  /** @returns view of the payload of a PES packet of the GOP */
  #payloadOf(index: number): Buffer {
    const fromBytes = this.#gop[index - 1]?.endBytes ?? 0
    return this.#memory.subarray(fromBytes, this.#gop[index]?.endBytes)
  }

  /** Whether there is a GOP with which decoders begin anew. */
  #begins(): boolean {
    const [key] = this.#gop
    if (key === undefined) return false
    const { codec } = key.unit.track
    if (codec !== 'h264' && codec !== 'h265') return false
    const keyBytes = this.#gop[this.#keyPackets - 1]?.endBytes
    this.#isClosed ??= closeGop(codec, this.#memory.subarray(0, keyBytes))
    return this.#isClosed
  }

  #repeat(untilTicks: number, isLast = false): PesUnit[] {
    const fromTicks = this.#nextTicks ?? 0
    this.#nextTicks = untilTicks
    const presentedTicks = fromTicks + this.#reorderTicks
    const units = this.#gop.map(({ unit }) => unit)
    const presented = units.toSorted((a, b) => a.ptsTicks - b.ptsTicks)
    const { inBandSets = false } = units.at(-1) ?? {}
    const isUnseen = this.#isUnseen
    this.#isUnseen = false
    return units.map((unit, index) => {
      const dtsTicks = fromTicks + index
      const times = { ptsTicks: presentedTicks + presented.indexOf(unit), dtsTicks }
      const payload = Buffer.from(this.#payloadOf(index))
      const packets = encodePes(unit.track.pid, VIDEO_STREAM_ID, times, payload)
      return {
        ...unit,
        ...times,
        chunks: [packets],
        sizeBytes: packets.length,
        payload,
        newParameters: isUnseen && unit.newParameters,
        inBandSets,
        repetition: { untilTicks, isLast, endsGop: index === units.length - 1 },
      }
    })
  }
}
