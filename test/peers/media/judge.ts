/**
 * Judges of the output of a case: foreign tools, except the packet reader and the judge of `millrace check`.
 *
 * @module
 */
import { isDeepStrictEqual } from 'node:util'
import inspector from 'mux.js/lib/tools/ts-inspector.js'
import type { Test } from 'tap'
import { MULTIVARIANT_URI, TS_MULTIVARIANT_URI } from '../../../src/hls/file-names.ts'
import { readNalUnits } from '../../support/annex-b.ts'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { decodeErrors, readDecoded, type ProbedStream } from '../support/media.ts'
import { StreamJudge } from '../../support/stream-judge.ts'
import { transmux } from '../../support/transmuxer.ts'
import {
  continuityFaults,
  readPackets,
  readPat,
  readPesPackets,
  readPmt,
  type ProgramMap,
  type TsPacket,
} from '../../support/ts-reader.ts'
import type { ClipFolder } from './clip.ts'
import type { Clip } from '../../mpegts/edit.ts'
import type { BytesOut, ExpectedPlaylist, MediaCase } from './media-case.ts'
import type { ListedSegment, PlaylistHistory, Presentation } from './publish.ts'

/** Checks all that a viewer loads with the judge of `millrace check`, and playlists with m3u8-parser. */
export function judgeLoads(
  t: Test,
  expected: readonly string[],
  { loads, playlists }: Presentation,
  isPaced: boolean,
): void {
  const judge = new StreamJudge({
    isTimed: isPaced,
    // An encoder that is lost or ends before the third segment has a playlist of what there is.
    watchedFromStart: isPaced && [...playlists.values()].every((it) => it.segments.length >= 3),
  })
  const findings = loads.flatMap(({ name, body, playlist, atMs }) => {
    if (typeof body !== 'string') {
      return judge[name.endsWith('.mp4') ? 'init' : 'segment'](name, body, playlist!, atMs)
    }
    if (name === MULTIVARIANT_URI || name === TS_MULTIVARIANT_URI)
      return judge.multivariant(body, atMs)
    return judge.playlist(name, body, atMs)
  })
  const ids = new Set(findings.map((finding) => /^\w+/.exec(finding)![0]))
  t.strictSame([...ids], expected, 'rules of millrace check', { findings })
  const complaints = loads.flatMap(({ body }) =>
    typeof body === 'string' ? parseM3u8(body).complaints : [],
  )
  t.strictSame(complaints, [], 'm3u8-parser')
}

/** Checks that hls.js finds a key frame first in each segment of versions with EXT-X-INDEPENDENT-SEGMENTS. */
export function judgeIndependence(t: Test, { versions, segments }: PlaylistHistory): void {
  const dependent = new Set(
    segments.filter((segment) => transmux([segment]).independent === false).map(({ uri }) => uri),
  )
  const wrong = versions
    .map((text) => parseMediaPlaylist(text, 'playlist.m3u8'))
    .filter(({ independentSegments }) => independentSegments)
    .flatMap((playlist) => playlist.segments.filter(({ uri, gap }) => !gap && dependent.has(uri!)))
  t.strictSame(wrong, [], 'EXT-X-INDEPENDENT-SEGMENTS, as hls.js reads the segments')
}

/** One playlist of a case with its segments, read back. */
export class PlaylistJudge {
  readonly #t: Test
  readonly #case: MediaCase
  readonly #expected: ExpectedPlaylist
  readonly #folder: ClipFolder
  readonly #segments: readonly ReadSegment[]
  /** Consecutive segments without a DISCONTINUITY. */
  readonly #stretches: readonly (readonly ReadSegment[])[]

  constructor(
    t: Test,
    mediaCase: MediaCase,
    expected: ExpectedPlaylist,
    context: { folder: ClipFolder; segments: readonly ListedSegment[] },
  ) {
    this.#t = t
    this.#case = mediaCase
    this.#expected = expected
    this.#folder = context.folder
    this.#segments = context.segments.map(readSegment)
    this.#stretches = splitAtDiscontinuities(this.#segments)
  }

  /** Checks the segments as the playlist lists them. */
  judgeCuts(): void {
    const t = this.#t
    const round = (sec: number) => Math.round(sec * 100) / 100
    t.strictSame(
      this.#segments.map(({ durationSec }) => round(durationSec)),
      this.#expected.durations,
      'EXTINF',
    )
    const discontinuities = this.#segments.flatMap(({ discontinuity }, msn) =>
      discontinuity ? [msn] : [],
    )
    t.strictSame(discontinuities, this.#case.discontinuities ?? [], 'DISCONTINUITY')
  }

  /** Checks a segment: PAT, PMT, whole PES packets, continuous counters, no PID that the PMT does not list. */
  judgePackets(): void {
    const t = this.#t
    const faults = continuityFaults(this.#segments.flatMap(({ packets }) => packets))
    t.strictSame(faults, [], 'continuity counters')
    const strange = this.#segments.flatMap(({ packets, map, uri }) => {
      const pids = new Set([0, map.pmtPid, map.pcrPid, ...map.streams.map(({ pid }) => pid)])
      const strangers = packets.filter(({ pid }) => !pids.has(pid))
      const begun = new Set<number>()
      const headless = packets.filter(({ pid, unitStart, hasPayload }) => {
        if (unitStart) begun.add(pid)
        return hasPayload && !begun.has(pid)
      })
      return strangers.length + headless.length === 0 ? [] : [uri]
    })
    t.strictSame(strange, [], 'every packet is announced, and no PES packet begins elsewhere')
    const expected = [this.#expected.tracks].flat()
    const tracks = this.#stretches.map(([first]) =>
      first!.map.streams.map(({ pid, streamType }) => `${pid}:${streamType.toString(16)}`).join(),
    )
    t.strictSame(tracks, expected, 'PMT')
  }

  /** ffprobe and ffmpeg. */
  async judgeFrames(originals: readonly Clip[]): Promise<void> {
    const t = this.#t
    const folder = this.#folder
    const { bytesOut = 'same', independent = true } = this.#case
    const readFrames = (file: string) => folder.readFrames(file)
    const files = await Promise.all(
      this.#stretches.map((stretch) => folder.write(joinBytes(stretch))),
    )
    const found = mergeStreams(await Promise.all(files.map(readFrames)))
    t.strictSame(
      { videoFrames: countFrames(found, 'video'), audioFrames: countFrames(found, 'audio') },
      { videoFrames: this.#expected.videoFrames, audioFrames: this.#expected.audioFrames },
      'ffprobe counts',
    )
    if (bytesOut === 'damaged') return

    const single = independent ? this.#segments : []
    const alone = await Promise.all(single.map(({ bytes }) => folder.write(bytes)))
    t.strictSame(
      ofDecoder(await decodeErrors(...files, ...alone)),
      [],
      'ffmpeg decodes the sequence, and each segment alone, in silence',
    )
    const sources = await Promise.all(originals.map(({ bytes }) => folder.write(bytes)))
    if (bytesOut === 'completed' || bytesOut === 'rewrapped') {
      const [decoded, before] = await Promise.all(
        [files, sources].map(async (list) => {
          const all = await Promise.all(list.map((file) => readDecoded(file)))
          return { video: all.flatMap((it) => it.video), audio: all.flatMap((it) => it.audio) }
        }),
      )
      t.strictSame(decoded, before, 'the decoded frames are the same')
      return
    }
    const sent = mergeStreams(await Promise.all(sources.map(readFrames)))
    for (const [pid, { frames }] of found) {
      const before = sent.get(pid)?.frames ?? []
      const last = bytesOut === 'from-key-frame' ? before.slice(-frames.length) : before
      const once = bytesOut === 'held' ? withoutRepetitions(frames, before) : frames
      const after = bytesOut === 'silenced' ? frames.slice(0, before.length) : once
      t.strictSame(after, last, `PID ${pid}: ffprobe reads the frames that were sent`)
    }
  }

  /** The elementary streams, PES packet by PES packet. */
  judgeBytes(originals: readonly Clip[]): void {
    const t = this.#t
    const { bytesOut = 'same' } = this.#case
    const sent = originals.map(({ bytes }) => readPackets(bytes))
    const types = new Map(
      this.#segments.flatMap(({ map }) =>
        map.streams.map(({ pid, streamType }) => [pid, streamType] as const),
      ),
    )
    for (const [pid, streamType] of types) {
      if (bytesOut === 'rewrapped' && streamType === ADTS) continue
      const isCompleted = HAS_INSERTIONS.has(bytesOut) && VIDEO_TYPES.has(streamType)
      const payloads = (packets: readonly TsPacket[]) =>
        readPesPackets(packets, pid).map(({ payload }) =>
          (isCompleted ? withoutInsertions(payload) : payload).toString('latin1'),
        )
      const before = sent.flatMap(payloads)
      if (bytesOut === 'framed' && VIDEO_TYPES.has(streamType)) {
        const after = this.#segments.flatMap(({ packets }) => payloads(packets))
        t.ok(after.join('') === before.join(''), `PID ${pid}: byte for byte`)
        continue
      }
      if (bytesOut === 'damaged') {
        const whole = new Set(before)
        const firsts = this.#segments.flatMap(({ packets }) => payloads(packets).slice(0, 1))
        t.ok(
          firsts.every((payload) => whole.has(payload)),
          `every segment starts with what was sent on PID ${pid}`,
        )
        continue
      }
      const all = this.#segments.flatMap(({ packets }) => payloads(packets))
      const isSilenced = bytesOut === 'silenced' && streamType === ADTS
      const once = bytesOut === 'held' ? withoutRepetitions(all, before) : all
      const after = isSilenced ? all.slice(0, before.length) : once
      const expected = bytesOut === 'from-key-frame' ? before.slice(-after.length) : before
      t.ok(
        after.length === expected.length && after.every((bytes, at) => bytes === expected[at]),
        `PID ${pid}: ${after.length} PES packets of ${before.length}, byte for byte`,
      )
    }
  }

  /** The transmuxer of hls.js: each segment alone, and all in sequence. */
  judgeByHlsJs(): void {
    if (this.#case.beyondHlsJs === true) return
    const t = this.#t
    const { videoFrames: videoCount, audioFrames: audioCount } = this.#expected
    const alone = this.#segments.map((segment) => transmux([segment]))
    const sum = (pick: (one: (typeof alone)[number]) => number) =>
      alone.reduce((total, one) => total + pick(one), 0)
    const expected = {
      videoFrames: videoCount,
      audioFrames: audioCount,
      ...sizesForHlsJs(this.#segments, audioCount),
    }
    t.strictSame(
      {
        videoFrames: sum(({ videoFrames }) => videoFrames),
        audioFrames: sum(({ audioFrames }) => audioFrames),
        videoBytes: sum(({ videoBytes }) => videoBytes),
        audioBytes: sum(({ audioBytes }) => audioBytes),
      },
      expected,
      'hls.js reads each segment alone',
    )
    const { videoFrames, audioFrames, videoBytes, audioBytes, id3Samples, complaints } = transmux(
      this.#segments,
    )
    t.equal(id3Samples, this.#case.id3Samples ?? 0, 'timed metadata')
    t.strictSame(
      { videoFrames, audioFrames, videoBytes, audioBytes },
      expected,
      'hls.js reads the sequence',
    )
    if (this.#case.bytesOut === 'damaged') return
    const all = [...complaints, ...alone.flatMap((one) => one.complaints)]
    const { independent = true } = this.#case
    t.strictSame(
      all.filter((complaint) => independent || !complaint.includes('No keyframe found')),
      [],
      'hls.js has nothing to complain of',
    )
    if (!independent || videoCount === 0) return
    t.ok(
      alone.every(({ independent }) => independent === true),
      'hls.js finds a key frame first',
    )
  }

  /** mux.js, the demuxer of video.js; the only key frame that it knows is IDR. */
  judgeByMuxJs(): void {
    const t = this.#t
    const { independent = true } = this.#case
    for (const { bytes, map, uri } of this.#segments) {
      const hasH264 = map.streams.some(({ streamType }) => streamType === 0x1b)
      if (!hasH264) continue
      const { video = [], firstKeyFrame } = inspector.inspect(bytes) ?? {}
      t.equal(video.length, 2, `mux.js finds first and last frame of ${uri}`)
      if (independent) t.equal(firstKeyFrame?.dts, video[0]?.dts, 'the first is a key frame')
    }
  }
}

/** @returns what was sent, in the order in which it is in the output */
function withoutRepetitions<T>(output: readonly T[], sent: readonly T[]): T[] {
  let count = 0
  return output.filter((each) => {
    const isNext = isDeepStrictEqual(each, sent[count])
    if (isNext) count++
    return isNext
  })
}

interface ReadSegment extends ListedSegment {
  readonly packets: readonly TsPacket[]
  readonly map: ProgramMap & { readonly pmtPid: number }
}

/** @throws where it does not begin with PAT and PMT, in a packet each */
function readSegment(segment: ListedSegment): ReadSegment {
  const packets = readPackets(segment.bytes)
  const [pat, pmt] = packets
  if (pat?.pid !== 0 || pmt === undefined) throw new Error(`${segment.uri}: no PAT first`)
  const programs = readPat(pat)
  const [{ pmtPid } = { pmtPid: 0x1fff }] = programs
  if (programs.length !== 1 || pmt.pid !== pmtPid) throw new Error(`${segment.uri}: no PMT second`)
  return { ...segment, packets, map: { ...readPmt(pmt), pmtPid } }
}

/** Media as hls.js remuxes it: NAL units with length prefixes, AAC without ADTS headers. */
function sizesForHlsJs(segments: readonly ReadSegment[], audioFrames: number) {
  const sizes = { videoBytes: 0, audioBytes: 0 }
  let isAdts = false
  for (const { packets, map } of segments) {
    for (const { pid, streamType } of map.streams) {
      const bytes = Buffer.concat(readPesPackets(packets, pid).map(({ payload }) => payload))
      if (VIDEO_TYPES.has(streamType)) {
        for (const { length } of readNalUnits(bytes)) sizes.videoBytes += 4 + length
      } else if (AUDIO_TYPES.has(streamType)) sizes.audioBytes += bytes.length
      isAdts ||= streamType === ADTS
    }
  }
  if (isAdts) sizes.audioBytes -= ADTS_HEADER_BYTES * audioFrames
  return sizes
}

const ADTS = 0x0f
const ADTS_HEADER_BYTES = 7
const VIDEO_TYPES: ReadonlySet<number> = new Set([0x1b, 0x24])
const AUDIO_TYPES: ReadonlySet<number> = new Set([0x03, 0x04, ADTS, 0x81])

/** Comparisons of what may have inserted NAL units. */
const HAS_INSERTIONS: ReadonlySet<BytesOut> = new Set(['completed', 'damaged'])

/** H.264 without parameter sets and delimiters. */
function withoutInsertions(payload: Buffer): Buffer {
  return Buffer.concat(readNalUnits(payload).filter((nal) => ![7, 8, 9].includes(nal[0]! & 31)))
}

/**
 * What ffmpeg says behind its decoder: of equal times, which were sent so or are less than a frame apart, and of channels whose
 * order a later frame tells. A message that is repeated is there once.
 */
const BEHIND_DECODER =
  /non monotonically increasing dts to muxer|Guessed Channel Layout|^ *Last message repeated/

export function ofDecoder(errors: string): string[] {
  return errors.split('\n').filter((line) => line !== '' && !BEHIND_DECODER.test(line))
}

/** The streams of one file after the other. */
function mergeStreams(
  files: readonly ReadonlyMap<number, ProbedStream>[],
): Map<number, ProbedStream> {
  const merged = new Map<number, ProbedStream>()
  for (const [pid, { kind, frames }] of files.flatMap((streams) => [...streams])) {
    merged.set(pid, { kind, frames: [...(merged.get(pid)?.frames ?? []), ...frames] })
  }
  return merged
}

function countFrames(streams: ReadonlyMap<number, ProbedStream>, wanted: string): number {
  const all = [...streams.values()].filter(({ kind }) => kind === wanted)
  return all.reduce((sum, { frames }) => sum + frames.length, 0)
}

export function joinBytes(segments: readonly ListedSegment[]): Buffer {
  return Buffer.concat(segments.map(({ bytes }) => bytes))
}

/** @returns consecutive segments without a DISCONTINUITY */
export function splitAtDiscontinuities<Segment extends ListedSegment>(
  segments: readonly Segment[],
): Segment[][] {
  const groups: Segment[][] = []
  for (const segment of segments) {
    if (groups.length === 0 || segment.discontinuity) groups.push([])
    groups.at(-1)!.push(segment)
  }
  return groups
}
