/**
 * Rules that the fragments of CMAF keep, whatever the source, and their samples compared with what was sent.
 *
 * @module
 */
import { isCmafRendition } from '../../src/hls/file-names.ts'
import type { Part, Segment } from '../../src/hls/store/segment.ts'
import { listBoxes, readNalUnits, readSamples, readTrackHeader } from '../mp4/box-tree.ts'
import { readPackets, readPesPackets } from '../support/ts-reader.ts'
import { AUDIO_FRAME_TICKS, FRENCH, SMALL, idOf, type RandomSource } from './random-source.ts'
import { AUDIO, VIDEO } from './source.ts'

const SEC = 90_000

/** `sample_is_non_sync_sample` in the flags of a sample (14496-12 8.8.3.1). */
const NON_SYNC = 0x10000

/** `nal_unit_type` of an IDR slice, and of any other. */
const IDR = 5
const SLICE = 1

/** Rounding of times to samples of audio and back, in ticks of 90 kHz. */
const ROUNDING_TICKS = 2

/** Excess of the longest EXTINF over EXT-X-TARGETDURATION. */
const MAX_EXCESS_SEC = 0.49
const MAX_REST_SEC = AUDIO_FRAME_TICKS / SEC

/** Maximum distance of a key frame of a variant from a boundary. */
const SNAP_TICKS = 0.05 * SEC

/** Rendition of transport stream and PID with the media of each rendition of CMAF. */
const SAME_MEDIA: Readonly<Record<string, readonly [rendition: string, pid: number]>> = {
  'cmaf-video-1': ['main', VIDEO.pid],
  'cmaf-video-2': ['video-2', SMALL.pid],
  'cmaf-audio-1': ['main', AUDIO.pid],
  'cmaf-audio-2': ['audio-2', FRENCH.pid],
}

type CheckedSource = Pick<RandomSource, 'sent' | 'isClean' | 'hasFields'>

/** Sample with its times in 90 kHz. */
interface PlacedSample {
  /** Whether it is the first of its fragment. */
  readonly isFirst: boolean
  readonly dtsTicks: number
  readonly ptsTicks: number
  /** Of the PES packets that end in it. */
  readonly ids: readonly number[]
}

interface ListedSegment {
  readonly uri: string
  readonly hasSamples: boolean
  /** Difference between EXTINF and the durations of the samples, beyond what EXTINF permits. */
  readonly offSec: number
  /** Whether it ends with a part in which no frame begins: the next frame begins with the next segment. */
  readonly endsEmpty: boolean
}

/** Samples of a rendition of CMAF in one timeline. */
interface Track {
  readonly name: string
  readonly isVideo: boolean
  readonly samples: PlacedSample[]
  readonly segments: ListedSegment[]
  /** Start of the timeline. */
  readonly startTicks: number
  /** End of its newest segment. */
  endTicks: number
  /** Decode time at which the next fragment begins; undefined at first, and after a gap. */
  nextTicks: number | undefined
}

/** `segment` with each one in order, `end` after the last; each throws where a rule is broken. */
export class FragmentChecks {
  readonly #source: CheckedSource
  /** Tracks of each timeline, by its number. */
  readonly #timelines = new Map<number, Track[]>()
  /** Ids in transport stream, by timeline, rendition and PID. */
  readonly #inTs = new Map<string, number[]>()
  /** Time of the first sample of each rendition, by the number of the segment. */
  readonly #starts = new Map<number, number[]>()
  /** Number of samples that were found among the PES packets. */
  samples = 0

  constructor(source: CheckedSource) {
    this.#source = source
  }

  segment(segment: Segment): void {
    if (isCmafRendition(segment.rendition)) this.#checkFragments(segment)
    else this.#collect(segment)
  }

  /** @param maxSkewSec  maximum difference in time between the first samples of the renditions of a segment */
  end(maxSkewSec: number): void {
    for (const [number, starts] of this.#starts) {
      const skewTicks = Math.max(...starts) - Math.min(...starts)
      if (this.#source.isClean && skewTicks > maxSkewSec * SEC) {
        throw new Error(`renditions begin segment ${number} ${skewTicks / SEC} s apart`)
      }
    }
    for (const [number, tracks] of this.#timelines) {
      const lifts = tracks.flatMap((track) => this.#compare(number, track))
      const [lift = 0] = lifts
      if (lift % SEC !== 0 || lift < 0) throw new Error(`times are lifted by ${lift} ticks`)
      if (lifts.some((it) => it !== lift)) throw new Error(`${lifts.join()} in timeline ${number}`)
    }
  }

  #checkFragments(segment: Segment): void {
    const { uri, parts, map, durationSec } = segment
    const track = this.#trackOf(segment)
    track.endTicks = segment.endTicks
    if (segment.sizeBytes === 0) {
      track.nextTicks = undefined
      return
    }
    if (map === undefined) throw new Error(`${uri} has no init segment`)
    const { timescale } = readTrackHeader(map.bytes)
    const before = track.samples.length
    let sumTicks = 0
    let isFirst = true
    for (const file of parts.length > 0 ? parts : [segment]) {
      if (file.chunks.length === 0) track.nextTicks = undefined
      else {
        sumTicks += this.#checkFile(file, track, timescale, isFirst)
        isFirst = false
      }
    }
    const sumSec = sumTicks / timescale
    const endsEmpty =
      readSamples(Buffer.concat(parts.at(-1)?.chunks ?? segment.chunks)).length === 0
    // What exceeds the longest EXTINF is in that of the next segment.
    const restSec = Math.abs((durationSec % 1) - MAX_EXCESS_SEC) < 1e-6 ? MAX_REST_SEC : 0
    const hasSamples = track.samples.length > before
    const offSec = Math.abs(sumSec - durationSec) - restSec
    track.segments.push({ uri, hasSamples, offSec, endsEmpty })
    if (!hasSamples) return
    const first = Math.min(...track.samples.slice(before).map(({ ptsTicks }) => ptsTicks))
    const { mediaSequence } = segment
    this.#starts.set(mediaSequence, [...(this.#starts.get(mediaSequence) ?? []), first])
  }

  /** @returns sum of the durations of the samples of a part, or of a segment without parts */
  #checkFile(file: Part | Segment, track: Track, timescale: number, isFirst: boolean): number {
    const { uri, chunks, independent } = file
    const bytes = Buffer.concat(chunks)
    const boxes = listBoxes(bytes)
    const types = boxes.flatMap(({ path }) => (path.includes('/') ? [] : [path])).join(' ')
    if (types !== (isFirst ? 'styp moof mdat' : 'moof mdat')) throw new Error(`${uri} has ${types}`)
    const decodeTime = boxes.find(({ path }) => path === 'moof/traf/tfdt')!.payload
    const fromTicks = Number(decodeTime.readBigUInt64BE(4))
    const samples = readSamples(bytes)
    const sizeBytes = samples.reduce((sum, sample) => sum + sample.bytes.length, 0)
    if (boxes.at(-1)!.payload.length !== sizeBytes) throw new Error(`${uri} has other bytes`)
    const gapTicks = fromTicks - (track.nextTicks ?? fromTicks)
    // What was not sent is a gap, but not in the main video, whose frames make the plan.
    const isGap = gapTicks > 0 && track.name !== 'cmaf-video-1' && !this.#source.isClean
    if (gapTicks !== 0 && !isGap) {
      throw new Error(`${uri} begins at ${fromTicks}, not at ${track.nextTicks}`)
    }
    const sumTicks = samples.reduce((sum, { durationTicks }) => sum + durationTicks, 0)
    track.nextTicks = fromTicks + sumTicks
    const [first] = samples
    // A segment without samples needs no other.
    const isSync = first === undefined ? 'parts' in file : (first.flags & NON_SYNC) === 0
    if (independent && !isSync) throw new Error(`${uri} is INDEPENDENT without a sync sample`)
    for (const sample of samples) {
      const { decodeTicks, compositionOffset, bytes: own, flags } = sample
      const slices = track.isVideo ? readNalUnits(own).filter(isSlice) : []
      const hasKey = !track.isVideo || slices.some((nal) => typeOf(nal) === IDR)
      if (hasKey === ((flags & NON_SYNC) !== 0)) throw new Error(`${uri} has ${flags} for a sample`)
      track.samples.push({
        isFirst: sample === first,
        dtsTicks: (decodeTicks * SEC) / timescale,
        ptsTicks: ((decodeTicks + compositionOffset) * SEC) / timescale,
        ids: (track.isVideo ? slices : [own]).flatMap((it) => idOf(it) ?? []),
      })
    }
    return sumTicks
  }

  /** @returns seconds by which the times are lifted, in ticks; nothing without samples */
  #compare(timeline: number, track: Track): number[] {
    const { name, isVideo, samples, segments, startTicks, endTicks } = track
    const { sent, isClean, hasFields } = this.#source
    const ids = samples.flatMap((sample) => sample.ids)
    const inTs = this.#inTs.get(`${timeline} ${SAME_MEDIA[name]!.join(' ')}`)
    // Audio that begins before the timeline, as at each boundary, or was sent ahead of its end, may be missing.
    const isOutside = (id: number) =>
      sent[id]!.lastPtsTicks < startTicks - ROUNDING_TICKS ||
      (sent[id]!.lastPtsTicks >= endTicks && !ids.includes(id))
    // After a step of the timestamps, a part may end between two fields: the second one is dropped.
    const isDropped = (id: number) =>
      isVideo ? !sent[id]!.unit.startsFrame && !ids.includes(id) : isOutside(id)
    if (name === 'cmaf-video-1' && !hasFields) checkSame(name, ids, inTs)
    else if (isClean)
      checkSame(
        name,
        ids,
        inTs?.filter((id) => !isDropped(id)),
      )
    const twice = ids.find((id, index) => id <= (ids[index - 1] ?? -1))
    if (twice !== undefined) throw new Error(`${name} has ${twice} twice`)
    // A timeline ends with the audio that was sent ahead, or a frame that lasts for what comes late.
    const last = segments.findLastIndex(({ hasSamples }) => hasSamples)
    const sums = isClean ? segments.slice(0, Math.max(0, last)) : []
    const maxOffSec = isVideo ? 1e-6 : AUDIO_FRAME_TICKS / SEC
    const isExempt = (index: number) => sums[index]?.endsEmpty === true
    const wrong = sums.find(
      ({ offSec }, index) => offSec > maxOffSec && !isExempt(index) && !isExempt(index - 1),
    )
    if (wrong !== undefined) throw new Error(`${wrong.uri} lasts ${wrong.offSec} s more or less`)
    const maxOffTicks = isVideo ? 0 : ROUNDING_TICKS + (isClean ? 0 : AUDIO_FRAME_TICKS)
    let lift: number | undefined
    for (const sample of samples) {
      const [id] = sample.ids
      if (id === undefined) continue
      const { unit, lastPtsTicks } = sent[id]!
      const liftedTicks = sample.ptsTicks - lastPtsTicks
      lift ??= Math.round(liftedTicks / SEC) * SEC
      const off = Math.abs(liftedTicks - lift)
      if (off > maxOffTicks) throw new Error(`${name} has ${id} ${off} ticks off`)
      if (sample.dtsTicks < 0 || sample.ptsTicks < 0) throw new Error(`${name} has a time below 0`)
      // A part may end during a frame, or during the last frame before a key frame of a variant.
      const movedTicks = isVideo ? unit.dtsTicks + lift - sample.dtsTicks : 0
      const minTicks = name === 'cmaf-video-1' ? 0 : -SNAP_TICKS
      const isMoved = sample.isFirst
        ? movedTicks < minTicks
        : movedTicks < minTicks || movedTicks > 0
      if (isMoved && isClean) throw new Error(`${name} has ${id} at ${sample.dtsTicks}`)
      this.samples++
    }
    return lift === undefined ? [] : [lift]
  }

  #trackOf({ rendition, discontinuitySequence, startTicks }: Segment): Track {
    const tracks = this.#timelines.get(discontinuitySequence) ?? []
    this.#timelines.set(discontinuitySequence, tracks)
    const known = tracks.find(({ name }) => name === rendition)
    if (known !== undefined) return known
    const isVideo = rendition.startsWith('cmaf-video')
    const track = {
      ...{ name: rendition, isVideo, samples: [], segments: [], startTicks },
      ...{ endTicks: startTicks, nextTicks: undefined },
    }
    tracks.push(track)
    return track
  }

  #collect({ rendition, discontinuitySequence, bytes }: Segment): void {
    const packets = readPackets(bytes)
    for (const { pid } of [VIDEO, AUDIO, SMALL, FRENCH]) {
      const key = `${discontinuitySequence} ${rendition} ${pid}`
      const ids = this.#inTs.get(key) ?? []
      this.#inTs.set(key, ids)
      ids.push(...readPesPackets(packets, pid).map(({ payload }) => idOf(payload)!))
    }
  }
}

/** @param expected  undefined without transport stream */
function checkSame(name: string, ids: readonly number[], expected = ids): void {
  const length = Math.max(ids.length, expected.length)
  for (let at = 0; at < length; at++) {
    const [found, wanted] = [ids, expected].map((each) => each.slice(at, at + 3).join())
    if (ids[at] !== expected[at]) throw new Error(`${name} has ${found} for ${wanted}`)
  }
}

function typeOf(nal: Buffer): number {
  return nal[0]! & 0x1f
}

function isSlice(nal: Buffer): boolean {
  return typeOf(nal) === SLICE || typeOf(nal) === IDR
}
