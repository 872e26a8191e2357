/**
 * Judge of the CMAF of a case: mp4box.js of GPAC reads every fragment, ffprobe and ffmpeg each rendition as a whole, and
 * what they find is what transport stream has, which has judges of its own.
 *
 * @module
 */
import { createFile, MP4BoxBuffer, type Sample } from 'mp4box'
import type { Test } from 'tap'
import { TICKS_PER_SEC, TIME_MODULUS } from '../../../src/mpegts/timestamps.ts'
import { readNalUnits as readSampleNalUnits } from '../../mp4/box-tree.ts'
import { readNalUnits } from '../../support/annex-b.ts'
import { readPackets, readPesPackets } from '../../support/ts-reader.ts'
import { decodeWarnings, readDecoded, type Frame } from '../support/media.ts'
import type { ClipFolder } from './clip.ts'
import { joinBytes, ofDecoder, splitAtDiscontinuities } from './judge.ts'
import type { ExpectedPlaylist, MediaCase } from './media-case.ts'
import type { ListedSegment, Published } from './publish.ts'

/** Rounding of times to samples of audio and back, in ticks of 90 kHz. */
const ROUNDING_TICKS = 2

/** Frames of silence in AAC, of one channel and of two. */
const SILENCE: ReadonlySet<string> = new Set(['01182007', '211004608c1c'])

/** `nal_unit_type` of parameter sets, and of delimiters, which CMAF does not have. */
const PARAMETER_SETS = { h264: [7, 8], h265: [32, 33, 34] } as const
const DELIMITER = { h264: 9, h265: 35 } as const

/** MP3 as an object type (RFC 6381 3.3) where CODECS has the older name of MPEG-4. */
const CODEC_NAMES: Readonly<Record<string, string>> = { 'mp4a.6b': 'mp4a.40.34' }

/** Checks the renditions of CMAF against those of transport stream. */
export async function judgeCmaf(
  t: Test,
  mediaCase: MediaCase,
  expected: ReadonlyMap<string, ExpectedPlaylist>,
  context: { published: Published; folder: ClipFolder },
): Promise<void> {
  const { ts, cmaf } = context.published
  t.strictSame([...cmaf.playlists.keys()], cmafPlaylists(mediaCase, expected), 'CMAF playlists')
  const codecs = cmaf.multivariants.at(-1)?.match(/(?<=CODECS=")[^"]*/g) ?? []
  const main = splitAtDiscontinuities(ts.playlists.get('playlist.m3u8')?.segments ?? [])
  const spans = await Promise.all(main.map((stretch) => spanOf(stretch, context.folder)))
  const lifts = new Map<number, number>()
  const files: string[] = []
  for (const [name, { segments }] of cmaf.playlists) {
    t.comment(name)
    const [, kind = '', number] = /^cmaf-(\w+)-(\d+)\.m3u8$/.exec(name) ?? []
    const twin = ts.playlists.get(number === '1' ? 'playlist.m3u8' : `${kind}-${number}.m3u8`)
    const twins = splitAtDiscontinuities(twin?.segments ?? [])
    const stretches = splitAtDiscontinuities(segments)
    t.equal(stretches.length, twins.length, 'DISCONTINUITY')
    for (const [index, stretch] of stretches.entries()) {
      const judge = new StretchJudge(t, mediaCase, { stretch, folder: context.folder })
      const codec = judge.judgeFragments()
      if (index === stretches.length - 1) {
        // RFC 6381 names the sample entry, `Opus`; players know `opus`.
        const named = codecs.join().split(',')
        const known = codec === 'Opus' ? 'opus' : codec
        t.ok(named.includes(known), `${known} is in CODECS`, { codecs })
      }
      files.push(await judge.file)
      const lift = await judge.judgeFrames(kind, twins[index] ?? [], spans[index]!)
      if (lift === undefined) continue
      t.equal(lift, lifts.get(index) ?? lift, 'audio and video are lifted alike')
      lifts.set(index, lift)
    }
  }
  if (mediaCase.bytesOut === 'damaged' || files.length === 0) return
  t.strictSame(ofDecoder(await decodeWarnings(...files)), [], 'ffmpeg decodes CMAF in silence')
}

/** @returns one playlist for each video and audio track of transport stream, video first */
function cmafPlaylists({ cmaf }: MediaCase, expected: ReadonlyMap<string, ExpectedPlaylist>) {
  const names = [...expected].flatMap(([name, { videoFrames, audioFrames }]) => {
    const hasAudio = cmaf?.audio ?? audioFrames > 0
    if (name !== 'playlist.m3u8') return [`cmaf-${name}`]
    return [
      ...(videoFrames > 0 ? ['cmaf-video-1.m3u8'] : []),
      ...(hasAudio ? ['cmaf-audio-1.m3u8'] : []),
    ]
  })
  return names.toSorted((a, b) => Number(isAudio(a)) - Number(isAudio(b)))
}

function isAudio(name: string): boolean {
  return name.includes('audio')
}

/** Start and end of video, in ticks of 90 kHz. */
interface Span {
  readonly startTicks: number
  readonly endTicks: number
}

/** @returns from the PTS of the first video frame to the end of the last; without video, all times */
async function spanOf(stretch: readonly ListedSegment[], folder: ClipFolder): Promise<Span> {
  const streams = await folder.readFrames(await folder.write(joinBytes(stretch)))
  const video = [...streams.values()].find(({ kind }) => kind === 'video')
  if (video === undefined) return { startTicks: -Infinity, endTicks: Infinity }
  const startTicks = video.frames[0]?.[0] ?? NaN
  const lengthSec = stretch.reduce((sum, { durationSec }) => sum + durationSec, 0)
  return { startTicks, endTicks: startTicks + lengthSec * TICKS_PER_SEC }
}

/** Consecutive segments of one rendition without a DISCONTINUITY. */
class StretchJudge {
  readonly #t: Test
  readonly #case: MediaCase
  readonly #folder: ClipFolder
  readonly #stretch: readonly ListedSegment[]
  /** Path of the stretch, with its init segment. */
  readonly file: Promise<string>
  #samples: readonly Sample[] = []
  /** As CODECS has it. */
  #codec = ''

  constructor(
    t: Test,
    mediaCase: MediaCase,
    { stretch, folder }: { stretch: readonly ListedSegment[]; folder: ClipFolder },
  ) {
    this.#t = t
    this.#case = mediaCase
    this.#folder = folder
    this.#stretch = stretch
    this.file = folder.write(Buffer.concat([initOf(stretch), joinBytes(stretch)]))
  }

  /** mp4box.js, segment by segment. @returns the codec as CODECS has it */
  judgeFragments(): string {
    const t = this.#t
    const { independent = true, cmaf = {} } = this.#case
    const { findings = [], audioGaps = false } = cmaf
    const init = initOf(this.#stretch)
    t.ok(
      this.#stretch.every((segment) => segment.init?.equals(init)),
      'one init segment',
    )
    const { codec, kind, segments, breaks } = readFragments(init, this.#stretch)
    this.#samples = segments.flat()
    this.#codec = codec
    t.equal(
      breaks > 0,
      audioGaps && kind === 'audio',
      'mp4box.js: each fragment begins where the one before ends',
    )
    if (kind === 'video' && !findings.includes('EXTINF_INEXACT')) {
      const wrong = this.#stretch.filter(({ durationSec }, index) => {
        const [first, last] = [segments[index]!.at(0)!, segments[index]!.at(-1)!]
        return Math.abs((endOf(last) - first.dts) / first.timescale - durationSec) > 0.001
      })
      t.strictSame(wrong, [], 'mp4box.js: samples last as long as EXTINF')
    }
    if (independent) {
      const dependent = segments.filter(([first]) => first?.is_sync !== true)
      t.strictSame(dependent, [], 'mp4box.js: each segment begins with a sync sample')
    }
    return codec
  }

  /**
   * ffprobe, for counts and times, and bytes as mp4box.js reads them.
   *
   * @param twin  the same stretch in transport stream
   * @param span  of the video
   * @returns ticks by which CMAF is later; undefined where transport stream has no such track
   */
  async judgeFrames(
    kind: string,
    twin: readonly ListedSegment[],
    { startTicks, endTicks }: Span,
  ): Promise<number | undefined> {
    const t = this.#t
    const bytes = joinBytes(twin)
    const streams = [...(await this.#folder.readFrames(await this.#folder.write(bytes)))]
    const [pid, sent] = streams.find(([, stream]) => stream.kind === kind) ?? []
    if (pid === undefined || sent === undefined) return undefined
    const [found] = [...(await this.#folder.readFrames(await this.file)).values()]
    const { timescale } = this.#samples[0]!
    const toTicks = (time = NaN) => (time * TICKS_PER_SEC) / timescale
    const maxTicks = this.#case.cmaf?.offTicks ?? (kind === 'video' ? 0 : ROUNDING_TICKS)
    // Audio that begins before the video, or at its end, is not in CMAF.
    const isIn = ([pts = NaN]: Frame) =>
      kind === 'video' || (pts >= startTicks - ROUNDING_TICKS && pts < endTicks - ROUNDING_TICKS)
    const isBeforeEnd = ([pts = NaN]: Frame, index: number) =>
      index < this.#samples.length || pts < endTicks - maxTicks
    const wanted = sent.frames.filter(isIn).filter(isBeforeEnd)
    t.equal(found?.frames.length, this.#samples.length, 'ffprobe counts')
    const silent = this.#samples.length - wanted.length
    const isSound = (sample: Sample) => !SILENCE.has(bytesOf(sample).toString('hex'))
    const first = Math.min(silent, Math.max(0, this.#samples.findIndex(isSound)))
    const samples = this.#samples.slice(first, first + wanted.length)
    t.equal(samples.length, wanted.length, 'mp4box.js counts')
    const rest = this.#samples.filter((sample) => !samples.includes(sample))
    t.notOk(rest.some(isSound), 'silence is before and behind what was sent')
    const frames = found?.frames.slice(first, first + wanted.length) ?? []
    const lifts = frames.flatMap(([pts, dts], index) => {
      const [sentPts = NaN, sentDts = NaN] = wanted[index] ?? []
      return [liftOf(toTicks(pts), sentPts), liftOf(toTicks(dts), sentDts)]
    })
    const lift = Math.round(lifts[0]! / TICKS_PER_SEC) * TICKS_PER_SEC
    const offTicks = Math.max(...lifts.map((each) => Math.abs(each - lift)))
    t.ok(offTicks <= maxTicks, `ffprobe times are ${offTicks} ticks off, but for whole seconds`)
    const payloads = readPesPackets(readPackets(bytes), pid).map(({ payload }) => payload)
    const inBand = this.#case.cmaf?.inBandSets === true
    const isSame =
      kind === 'video'
        ? hasNalUnitsOf(samples, this.#codec, payloads, inBand)
        : hasFramesOf(samples, this.#codec, payloads)
    t.ok(isSame, `${kind} of PID ${pid}, byte for byte`)
    if (inBand && kind === 'video') {
      const [here, there] = await Promise.all([this.file, this.#folder.write(bytes)])
      const decoded = await Promise.all([here, there].map((file) => readDecoded(file)))
      t.strictSame(decoded[0]!.video, decoded[1]!.video, 'the decoded frames are the same')
    }
    return lift
  }
}

function initOf([first]: readonly ListedSegment[]): Buffer {
  return first?.init ?? Buffer.alloc(0)
}

function endOf({ dts, duration }: Sample): number {
  return dts + duration
}

/** Reads the samples of each segment, and counts the fragments whose `tfdt` is not the sum of durations before. */
function readFragments(init: Buffer, segments: readonly ListedSegment[]) {
  const file = createFile()
  let samples: Sample[] = []
  let at = 0
  const append = (bytes: Buffer) => {
    samples = []
    file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(Uint8Array.from(bytes).buffer, at))
    at += bytes.length
    return samples
  }
  file.onError = (module, message) => {
    throw new Error(`mp4box.js: ${module}: ${message}`)
  }
  file.onSamples = (_id, _user, read) => samples.push(...read)
  append(init)
  const { tracks } = file.getInfo()
  const [track] = tracks
  if (track === undefined || tracks.length > 1) throw new Error(`${tracks.length} tracks`)
  file.setExtractionOptions(track.id, undefined, { nbSamples: 1 })
  file.start()
  const read = segments.map(({ bytes }) => append(bytes))
  // mp4box.js counts the DTS from the first `tfdt`.
  const firsts = read.flat().filter(({ number_in_traf: number }) => number === 0)
  const breaks = firsts.filter(({ moof_number: number = 0, dts }) => {
    const [traf] = file.moofs[number - 1]?.trafs ?? []
    return traf?.tfdt.baseMediaDecodeTime !== dts
  })
  return {
    codec: CODEC_NAMES[track.codec] ?? track.codec,
    kind: track.type,
    segments: read,
    breaks: breaks.length,
  }
}

/** @returns ticks by which the first is later, whatever the wraps of the 33-bit clock */
function liftOf(ticks: number, sentTicks: number): number {
  const shifted = (ticks - sentTicks + TICKS_PER_SEC) % TIME_MODULUS
  return ((shifted + TIME_MODULUS) % TIME_MODULUS) - TICKS_PER_SEC
}

/** @param inBand  whether samples may have parameter sets */
function hasNalUnitsOf(
  samples: readonly Sample[],
  entry: string,
  payloads: readonly Buffer[],
  inBand: boolean,
): boolean {
  const codec = entry.startsWith('avc') ? 'h264' : 'h265'
  const sets: readonly number[] = PARAMETER_SETS[codec]
  const typeOf = ([first = 0]: Buffer) => (codec === 'h264' ? first & 31 : (first >> 1) & 63)
  const isSet = (nal: Buffer) => sets.includes(typeOf(nal))
  const sent = readNalUnits(Buffer.concat(payloads)).filter(
    (nal) => !isSet(nal) && typeOf(nal) !== DELIMITER[codec],
  )
  const found = samples
    .flatMap((sample) => readSampleNalUnits(bytesOf(sample)))
    .filter((nal) => !inBand || !isSet(nal))
  return found.length === sent.length && found.every((nal, index) => nal.equals(sent[index]!))
}

/** Without the frames before the video begins and behind its end. */
function hasFramesOf(
  samples: readonly Sample[],
  codec: string,
  payloads: readonly Buffer[],
): boolean {
  const isAdts = /^mp4a.40.[25]$/.test(codec)
  const read = isAdts ? readAdtsPayloads : codec === 'Opus' ? readOpusPackets : undefined
  const sent = Buffer.concat(read === undefined ? payloads : payloads.flatMap(read))
  const found = Buffer.concat(samples.map(bytesOf))
  return found.length > 0 && sent.includes(found)
}

/** Reads the frames behind headers of 7 bytes (ISO/IEC 14496-3 1.A.2.2). */
function readAdtsPayloads(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at + 7 <= bytes.length;) {
    const end = at + ((bytes.readUIntBE(at + 3, 3) >> 5) & 0x1fff)
    frames.push(bytes.subarray(at + 7, end))
    at = Math.max(end, at + 7)
  }
  return frames
}

/** Reads the packets behind control headers without an extension (ETSI TS 103 491 4.3). */
function readOpusPackets(bytes: Buffer): Buffer[] {
  const packets: Buffer[] = []
  for (let at = 0; at + 3 <= bytes.length;) {
    const trims = (bytes[at + 1]! & 0x18).toString(2).replaceAll('0', '').length
    let sizeBytes = 0
    for (at += 2; bytes[at] === 0xff; at++) sizeBytes += 0xff
    sizeBytes += bytes[at]!
    at += 1 + 2 * trims
    packets.push(bytes.subarray(at, at + sizeBytes))
    at += sizeBytes
  }
  return packets
}

function bytesOf({ data }: Sample): Buffer {
  return Buffer.from(data ?? [])
}
