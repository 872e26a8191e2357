/**
 * Table of all warnings of a stream: code -> when it begins, when it ends, message.
 *
 * A message has three parts for the operator: what is wrong, with the figure; what viewers see; what to set. It has at
 * most 160 characters. Check numbers are those of ETSI TR 101 290 5.2.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'
import { MAX_LATENCY_MS } from '../srt/wire/limits.ts'
import { figure, mebibytes, megabits, percent, programs, shortened, tracks } from './figures.ts'
import type { Shortage } from './shortage-watch.ts'

/** Rule of a warning, which begins with a fact and ends when the fact is no longer observed. */
export interface WarningRule<Figures> {
  /** Whether the warning begins at these figures; default: at any. */
  readonly begins?: (figures: Figures) => boolean
  /** Whether the warning ends at these figures; default: when `begins` is false. */
  readonly ends?: (figures: Figures) => boolean
  /** Seconds that the warning outlasts the fact; default 0. Infinity: until an encoder connects or the stream stops. */
  readonly holdSec?: number | ((figures: Figures) => number)
  /** Codes of other warnings; while any of them is active, it explains this warning and suppresses it. */
  readonly unless?: readonly string[]
  /** Combines the figures of an active warning with new figures; default: the new figures. */
  readonly merge?: (before: Figures, now: Figures) => Figures
  readonly message: (figures: Figures) => string
}

/** Number of events in the latest `spanSec` seconds without packet loss on the connection. */
interface Events {
  readonly count: number
  readonly spanSec: number
}

/** `sent`, `lost` and `count`: packets sent, lost, and lost without repair. */
interface Losses extends Events {
  readonly sent: number
  readonly lost: number
  readonly latencyMs: number
  readonly rttMs: number
  readonly bitrateBps: number
}

/** When losses are too many, and when no more. */
const LOSSES = {
  begins: ({ count, sent }: Losses) => count > 0.001 * sent,
  ends: ({ count, sent }: Losses) => count <= 0.0005 * sent,
}

interface Bitrate {
  readonly meanBps: number
  readonly maxBps: number
}

/** Seconds for which the warning about a single event continues. */
const EVENT_HOLD_SEC = 30

/** Minimum latency in round trips: loss detection, NAK and retransmission take up to 2, and a second attempt 2 more. */
const MIN_ROUND_TRIPS = 4

/** Advised latency in round trips, with a reserve for a varying round-trip time. */
const ADVISED_ROUND_TRIPS = 4.5

export const WARNINGS = {
  // The key of an encoder.

  KEY_EXPIRING: rule<{ leftSec: number }>({
    message: ({ leftSec }) =>
      `The stream key ${leftSec > 0 ? `expires in ${Math.ceil(leftSec / 60)} min` : 'has expired'}. Viewers lose the stream if the encoder must reconnect. Call start-stream (key_lifetime_sec) and set the new key.`,
  }),

  // The sources of a stream.

  PULL_FAILING: rule<{ remote: string; reason: string }>({
    // Longer than the longest time between two failures: until the next call, and of the call.
    holdSec: 45,
    message: ({ remote, reason }) =>
      `The call to ${shortened(remote)} fails: ${reason}. Viewers may wait. See pull.error in its status, check source and pull_url.`,
  }),
  PUSH_FAILING: rule<{ remote: string; reason: string }>({
    holdSec: 45,
    message: ({ remote, reason }) =>
      `The push to ${shortened(remote)} fails: ${reason}. Its viewers wait. See pushes in the status, check listener and push_urls.`,
  }),
  FAILED_OVER: rule<{ wanted: string; onAir: string; isConnected: boolean }>({
    message: ({ wanted, onAir, isConnected }) =>
      `The ${wanted} encoder ${isConnected ? 'pauses, or has just come back' : 'is gone'}, and the ${onAir} one is on air. Viewers see a cut. Restart it or its line, or call switch-source.`,
  }),
  STANDBY_GONE: rule<{ source: string }>({
    message: ({ source }) =>
      `The ${source} encoder has left. Viewers lose the stream if the other one fails. Restart it.`,
  }),
  STANDBY_LOSES: rule<Losses & { source: string }>({
    ...LOSSES,
    message: ({ source, count, sent, latencyMs, bitrateBps }) =>
      `The spare ${source} encoder loses ${percent(count / sent)} for good. Viewers see holes once it is on air. Lower its bitrate (${megabits(bitrateBps)} Mbit/s), or raise its latency (${latencyMs} ms).`,
  }),
  SOURCES_DIFFER: rule<{ source: string; has: string; onAir: string; onAirHas: string }>({
    message: ({ source, has, onAir, onAirHas }) =>
      `Sources differ: ${source} has ${has}, ${onAir} ${onAirHas}. Viewers may see a pause. Give both the same settings.`,
  }),

  // The archive of a stream.

  ARCHIVE_BEHIND: rule<{ lagSec: number }>({
    holdSec: EVENT_HOLD_SEC,
    message: ({ lagSec }) =>
      `The archive is ${figure(lagSec)} s behind. Live viewers notice nothing. Look at archive.error of the stream, and at the store.`,
  }),
  ARCHIVE_GAPS: rule<{ gapSec: number }>({
    holdSec: EVENT_HOLD_SEC,
    message: ({ gapSec }) =>
      `The archive loses media: ${figure(gapSec)} s so far. Live viewers notice nothing. Look at archive.error of the stream, or raise ARCHIVE_MAX_MIB.`,
  }),

  // The media of an encoder.

  // 1.3: a PAT at least every 0.5 s
  NO_PAT: rule({
    message: () =>
      'No PAT for 3 s: this is not MPEG-TS. Viewers see nothing. Set the output format to MPEG-TS (ffmpeg: -f mpegts).',
  }),
  // 1.5: a PMT at least every 0.5 s
  NO_PMT: rule<{ programNumbers: readonly number[] }>({
    message: ({ programNumbers }) =>
      `No PMT of ${programs(programNumbers)} for 3 s. Viewers see nothing. Send PMTs (ffmpeg: -pat_period 0.1), or take these programs out of the PAT.`,
  }),
  PROGRAM_NOT_FOUND: rule<{ wanted: number; programNumbers: readonly number[] }>({
    message: ({ wanted, programNumbers }) =>
      `Program ${wanted} is wanted, but the PAT lists ${programs(programNumbers)}. Viewers see nothing. Correct program= in the stream key, or TS_PROGRAM.`,
  }),
  // 1.6: a packet of each PID of the program within a set period
  NO_MEDIA: rule<{ silentSec: number }>({
    message: ({ silentSec }) =>
      `No video and no audio for ${figure(silentSec)} s, though connected. Viewers wait. Start or resume the encoder, and check its sources.`,
  }),
  // 1.3, 1.5
  PSI_TOO_RARE: rule<{ tables: number; playedSec: number }>({
    begins: ({ tables, playedSec }) => tables < playedSec / 2,
    ends: ({ tables, playedSec }) => tables >= playedSec,
    message: ({ tables, playedSec }) =>
      `PAT and PMT come every ${figure(playedSec / Math.max(tables, 1))} s. Viewers wait for them after each reconnect. Set 0.1 to 0.5 s (ffmpeg: -pat_period 0.1).`,
  }),
  // 1.4
  CONTINUITY_ERRORS: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `${figure(count)} continuity errors in ${spanSec} s, none of them by SRT. Viewers see broken frames. Check UDP, capture card or file before the SRT sender.`,
  }),
  // 2.1
  TRANSPORT_ERRORS: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `${figure(count)} packets in ${spanSec} s have transport_error_indicator. Viewers see broken frames. Check the reception (satellite, antenna, cable).`,
  }),
  SCRAMBLED: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `${figure(count)} packets in ${spanSec} s are scrambled. Viewers see nothing of them. Switch off BISS or CAS; to encrypt, set an SRT passphrase.`,
  }),
  // `offsetSec`: audio minus video DTS on arrival. `startOffsetSec`: first video DTS minus first audio DTS.
  AV_SKEW: rule<{ offsetSec: number; startOffsetSec: number }>({
    begins: ({ offsetSec, startOffsetSec }) =>
      isSkewed(offsetSec) || Math.abs(startOffsetSec) > 0.5,
    ends: ({ offsetSec, startOffsetSec }) =>
      !isSkewed(offsetSec / 0.8) && Math.abs(startOffsetSec) <= 0.5,
    message: ({ offsetSec, startOffsetSec }) => {
      const sec = figure(Math.abs(offsetSec === 0 ? startOffsetSec : offsetSec))
      const place = offsetSec > 0 ? 'ahead of' : 'behind'
      return offsetSec === 0
        ? `Audio begins ${sec} s ${startOffsetSec > 0 ? 'before' : 'after'} video. Viewers miss one of them at first. Start both together, without a delay (ffmpeg: -itsoffset).`
        : `Audio is ${sec} s ${place} video. Viewers see bad lip sync. Set the audio delay to 0 (OBS: Sync Offset), and take both from one device.`
    },
  }),
  AV_DRIFT: rule<{ driftSec: number }>({
    begins: ({ driftSec }) => Math.abs(driftSec) > 0.3,
    ends: ({ driftSec }) => Math.abs(driftSec) <= 0.2,
    message: ({ driftSec }) =>
      `Audio moved ${figure(Math.abs(driftSec))} s ${driftSec > 0 ? 'ahead of' : 'behind'} video. Viewers see lip sync worsen. Lock both to one clock, or resample (ffmpeg: -af aresample=async=1).`,
  }),
  PTS_GAPS: rule<Events & { missingSec: number }>({
    begins: isSome,
    message: ({ count, missingSec, spanSec }) =>
      `${figure(missingSec)} s of video are missing in ${spanSec} s (${figure(count)} gaps). Viewers see it stutter. Set a faster preset or a smaller frame size, and check the capture.`,
  }),
  DTS_REPEATED: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `DTS stood still or went back ${figure(count)} times in ${spanSec} s. Viewers miss these frames. Make new timestamps (ffmpeg: -fps_mode cfr).`,
  }),
  PTS_BEFORE_DTS: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `PTS is before DTS ${figure(count)} times in ${spanSec} s. Viewers miss these frames. Encode anew instead of copying, or switch B-frames off (ffmpeg: -bf 0).`,
  }),
  FRAME_RATE_ODD: rule<{ measured: number; announced: number }>({
    begins: ({ measured, announced }) => Math.abs(measured / announced - 1) > 0.1,
    ends: ({ measured, announced }) => Math.abs(measured / announced - 1) <= 0.05,
    unless: ['PTS_GAPS'],
    message: ({ measured, announced }) =>
      `${figure(measured)} frames arrive a second, ${figure(announced)} are announced. Viewers see it stutter. Set the frame rate of the source, constant (ffmpeg: -r, -fps_mode cfr).`,
  }),
  NOT_REAL_TIME: rule<{ rate: number }>({
    begins: ({ rate }) => Math.abs(rate - 1) > 0.1,
    ends: ({ rate }) => Math.abs(rate - 1) <= 0.05,
    message: ({ rate }) =>
      rate > 1
        ? `${figure(rate)} s of media arrive a second. Viewers miss segments. Send in real time (ffmpeg: -re before each -i of a file or generated source).`
        : `${figure(rate)} s of media arrive a second. Viewers stall. Set a faster preset, a smaller frame size or a lower frame rate.`,
  }),
  CLOCK_DRIFT: rule<{ ppm: number }>({
    begins: ({ ppm }) => Math.abs(ppm) > 200,
    ends: ({ ppm }) => Math.abs(ppm) <= 150,
    unless: ['NOT_REAL_TIME'],
    message: ({ ppm }) =>
      `The encoder's clock is ${figure(Math.abs(ppm))} ppm too ${ppm > 0 ? 'fast' : 'slow'}, ${figure(Math.abs(ppm) * 3600e-6)} s an hour. Viewers ${ppm > 0 ? 'fall behind' : 'stall'}. Set its clock to the capture device or NTP.`,
  }),
  GOP_IRREGULAR: rule<{ shortSec: number; longSec: number; segmentSec: number }>({
    // Key frame intervals shorter than a segment hardly change the duration of segments.
    begins: ({ shortSec, longSec, segmentSec }) =>
      longSec > 1.1 * segmentSec && longSec > 1.5 * shortSec,
    ends: ({ shortSec, longSec, segmentSec }) =>
      longSec <= 1.1 * segmentSec || longSec <= 1.25 * shortSec,
    message: ({ shortSec, longSec }) =>
      `Key frames are ${figure(shortSec)} to ${figure(longSec)} s apart. Viewers get uneven segments. Set a fixed interval of 2 s (OBS: Keyframe Interval; ffmpeg: -g 60 -sc_threshold 0).`,
  }),
  OPEN_GOP: rule<{ openGops: number }>({
    begins: ({ openGops }) => openGops >= 2,
    ends: ({ openGops }) => openGops === 0,
    message: ({ openGops }) =>
      `${figure(openGops)} GOPs are open: frames need the GOP before. Viewers who join see them broken. Switch open GOP off (x264, x265: open-gop=0).`,
  }),
  INTRA_REFRESH: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `${figure(count)} intra refreshes in ${spanSec} s instead of key frames. Viewers cannot join. Set intra-refresh=0 (x264) and a keyframe interval of 2 s.`,
  }),
  GOP_TOO_LONG: rule<{ gopSec: number; limitSec: number; targetSec: number }>({
    holdSec: perSegment,
    message: ({ gopSec, limitSec }) =>
      `Key frames are over ${figure(gopSec)} s apart (limit ${limitSec} s). Viewers join late. Set the keyframe interval to 2 s (OBS: Output > Keyframe Interval; ffmpeg: -g 60 at 30 fps).`,
  }),
  SEGMENT_TOO_LARGE: rule<{ maxBytes: number; targetSec: number }>({
    holdSec: perSegment,
    message: ({ maxBytes }) =>
      `A GOP exceeds ${mebibytes(maxBytes)} MiB and is cut. Viewers cannot join at such segments. Lower the bitrate or the keyframe interval (ffmpeg: -b:v, -g).`,
  }),
  NO_KEY_FRAME: rule<{ awaitedSec: number }>({
    holdSec: EVENT_HOLD_SEC,
    message: ({ awaitedSec }) =>
      `No whole key frame for ${figure(awaitedSec)} s. Viewers see nothing. Set a keyframe interval of 2 s, without intra refresh (OBS: Keyframe Interval; ffmpeg: -g 60).`,
  }),
  TIMESTAMP_JUMP: rule<{ jumpSec: number }>({
    holdSec: EVENT_HOLD_SEC,
    message: ({ jumpSec }) =>
      `Timestamps jumped ${figure(Math.abs(jumpSec))} s ${jumpSec > 0 ? 'ahead' : 'back'}. Viewers' players reset (DISCONTINUITY). Keep the encoder's clock and input steady.`,
  }),
  SPLICE_MISSED: rule<{ points: number }>({
    holdSec: EVENT_HOLD_SEC,
    merge: addPoints,
    message: ({ points }) =>
      `The times of ${figure(points)} SCTE-35 splice points never came. Viewers miss these breaks. Set splice times by the PTS of the video, within the stream.`,
  }),
  TOO_MANY_SPLICES: rule<{ points: number }>({
    holdSec: EVENT_HOLD_SEC,
    merge: addPoints,
    message: ({ points }) =>
      `${figure(points)} SCTE-35 splice points found no room in the playlist. Viewers miss these breaks. Send each event once, and signal the end of each break.`,
  }),
  AUDIO_OUT_OF_STEP: rule<{ targetSec: number }>({
    holdSec: perSegment,
    message: () =>
      'Audio is over 10 s away from video and is dropped. Viewers hear nothing. Restart the encoder, with audio and video on one clock.',
  }),
  AUDIO_REALIGNED: rule<{ shiftSec: number }>({
    message: ({ shiftSec }) =>
      `Audio and video came ${figure(Math.abs(shiftSec))} s apart and are aligned again. Viewers may notice lip sync. Run audio and video on one clock.`,
  }),
  // 1.6
  TRACK_SILENT: rule<{ track: Track; isHeld?: boolean }>({
    message: ({ track: { kind, pid }, isHeld = false }) =>
      `No ${kind} for 5 s on PID ${pid}, which the PMT lists. Viewers ${isHeld ? 'see the last picture' : 'get none'}. Check the ${kind} source, or switch the track off (ffmpeg: -an, -vn).`,
  }),
  VARIANTS_NOT_ALIGNED: rule<{ variants: number; targetSec: number }>({
    holdSec: perSegment,
    message: ({ variants }) =>
      `${variants} video tracks have key frames elsewhere. Viewers cannot switch quality. Set one interval for all (ffmpeg: -g 60 -keyint_min 60 -sc_threshold 0).`,
  }),
  TRACKS_LEFT_OUT: rule<{ tracks: readonly Track[]; tooMany: boolean }>({
    message: ({ tracks: all, tooMany }) =>
      tooMany
        ? `Not carried: ${tracks(all)}. Viewers miss them. Send at most 8 video, 16 audio and 31 data tracks.`
        : `Not carried: ${tracks(all)}. Viewers miss them. Send up to 8 H.264/H.265 and 16 AAC/MP3/AC-3 tracks, or set HLS_TRACKS=all.`,
  }),
  TRACKS_NOT_IN_CMAF: rule<{ tracks: readonly Track[] }>({
    message: ({ tracks: all }) =>
      `CMAF does not carry ${tracks(all)}. Viewers of master.m3u8 miss it. Send AAC with one block a frame, MP3 or Opus.`,
  }),
  PARAMETER_SETS_VARY: rule<{ tracks: readonly Track[] }>({
    message: ({ tracks: all }) =>
      `${tracks(all)} changes its PPS: CMAF has it in samples (avc3, hev1). Viewers on Apple devices may see nothing. Keep the PPS, or give them ts.m3u8.`,
  }),
  AUDIO_CODECS_DIFFER: rule<{ tracks: readonly Track[] }>({
    message: ({ tracks: all }) =>
      `Not carried: ${tracks(all)}: the main codec lacks its language. Viewers miss it. Send it in AAC, or set HLS_TRACKS=all.`,
  }),
  AUDIO_GONE: rule({
    message: () =>
      'The audio that the stream began with is gone. Viewers hear silence. Set the audio source (OBS: Audio Mixer; ffmpeg: without -an).',
  }),
  AUDIO_TOO_LATE: rule({
    message: () =>
      'Audio joined a stream that began without it, and is dropped. Viewers hear nothing. Restart the stream with audio, or set HLS_TRACKS=all.',
  }),

  // The SRT connection of an encoder.

  LINE_GONE: rule<{ gone: number; lines: number }>({
    begins: ({ gone }) => gone > 0,
    message: ({ gone, lines }) =>
      `${gone} of the encoder's ${lines} lines ${gone === 1 ? 'is' : 'are'} gone. Viewers notice it if the others cannot carry the bitrate. Check its modem, cable or network.`,
  }),
  LATENCY_TOO_LOW: rule<{ latencyMs: number; rttMs: number; steadyRttMs: number }>({
    begins: ({ latencyMs, steadyRttMs }) => !isEnough(latencyMs, MIN_ROUND_TRIPS, steadyRttMs),
    ends: ({ latencyMs, steadyRttMs }) => isEnough(latencyMs, ADVISED_ROUND_TRIPS, steadyRttMs),
    message: ({ latencyMs, rttMs }) => {
      const advisedMs = adviseLatencyMs(rttMs)
      return `Latency is ${latencyMs} ms, ${MIN_ROUND_TRIPS} round trips take ${Math.ceil(MIN_ROUND_TRIPS * rttMs)}. Viewers may see losses. Set latency=${advisedMs * 1000} (ffmpeg, OBS: microseconds) or SRT_LATENCY_MS=${advisedMs}.`
    },
  }),
  PACKETS_UNDECRYPTABLE: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `${figure(count)} packets in ${spanSec} s could not be decrypted. Viewers see holes. Reconnect the encoder, with the passphrase of this stream.`,
  }),
  WINDOW_OVERFLOW: rule<Events & { latencyMs: number; bitrateBps: number }>({
    begins: isSome,
    message: ({ count, spanSec, latencyMs, bitrateBps }) =>
      `${figure(count)} packets in ${spanSec} s outran a missing one (${megabits(bitrateBps)} Mbit/s, latency ${latencyMs} ms). Viewers see holes. Lower bitrate or latency.`,
  }),
  LOSSES_NOT_REPAIRED: rule<Losses>({
    ...LOSSES,
    unless: ['LATENCY_TOO_LOW', 'PACKETS_UNDECRYPTABLE', 'WINDOW_OVERFLOW'],
    message: ({ count, sent, lost, latencyMs, rttMs, bitrateBps }) =>
      `${percent(lost / sent)} lost, ${percent(count / sent)} not repaired (latency ${latencyMs} ms, RTT ${Math.ceil(rttMs)} ms). Viewers see holes. Lower the bitrate (now ${megabits(bitrateBps)} Mbit/s) or raise latency.`,
  }),

  // What a source costs this service: memory, bitrate and CPU.

  CACHE_TOO_SMALL: rule<Shortage>({
    begins: ({ listed, wanted, cut, short, released, gaps }) =>
      (short && listed < Math.min(wanted, cut)) || released > 0 || gaps > 0,
    holdSec: EVENT_HOLD_SEC,
    merge: (before, now) => ({
      ...now,
      listed: Math.min(before.listed, now.listed),
      released: before.released + now.released,
      gaps: before.gaps + now.gaps,
    }),
    message: ({ listed, wanted, released, gaps, advisedBytes }) =>
      `Memory is short: ${listed} of ${wanted} segments listed, ${figure(released)} released early, ${figure(gaps)} gaps. ${
        gaps > 0
          ? 'Viewers see holes.'
          : released > 0
            ? 'Slow viewers miss segments.'
            : 'Viewers can rewind less.'
      } Set CACHE_MAX_MIB to ${mebibytes(advisedBytes)}.`,
  }),
  BITRATE_HIGH: rule<Bitrate>({
    begins: ({ meanBps, maxBps }) => meanBps >= 0.8 * maxBps,
    ends: ({ meanBps, maxBps }) => meanBps < 0.75 * maxBps,
    message: ({ meanBps, maxBps }) =>
      `The encoder sends ${megabits(meanBps)} Mbit/s (limit ${megabits(maxBps)}). Over it viewers lose the stream. Lower its bitrate, or raise INGEST_MAX_MBPS.`,
  }),
  BITRATE_EXCEEDED: rule<Bitrate>({
    holdSec: Infinity,
    message: ({ meanBps, maxBps }) =>
      `The encoder sent ${megabits(meanBps)} Mbit/s (limit ${megabits(maxBps)}) and was cut off. Viewers wait. Lower its bitrate, or raise INGEST_MAX_MBPS.`,
  }),
  INGEST_TOO_COSTLY: rule<{ dropped: number }>({
    holdSec: EVENT_HOLD_SEC,
    message: ({ dropped }) =>
      `${figure(dropped)} packets dropped: tables, timestamps or tiny frames take 2 x the CPU of clean media. Viewers see holes. Keep PMT, SPS and frame times steady.`,
  }),
}

export type WarningCode = keyof typeof WARNINGS

/** Observation with its figures, which may begin, continue or end the warning of the same code. */
export type WarningFact = {
  [Code in WarningCode]: { readonly code: Code } & FiguresOf<(typeof WARNINGS)[Code]>
}[WarningCode]

type FiguresOf<Rule> = Rule extends WarningRule<infer Figures> ? Figures : never

/** Returns the row; the type argument states its figures, which TypeScript cannot infer. */
function rule<Figures = object>(row: WarningRule<Figures>): WarningRule<Figures> {
  return row
}

/** Hold time, in seconds, of a fact that each affected segment repeats: three target durations, but at least 30 s. */
function perSegment({ targetSec }: { readonly targetSec: number }): number {
  return Math.max(EVENT_HOLD_SEC, 3 * targetSec)
}

function isSome({ count }: Events): boolean {
  return count > 0
}

/** Tolerates audio 0.5 s ahead of video, and video 1.5 s ahead, since muxers send video early for decoder buffers. */
function isSkewed(offsetSec: number): boolean {
  return offsetSec > 0.5 || offsetSec < -1.5
}

/** Whether a latency is at least `roundTrips` round trips, or the maximum latency if that is less. */
function isEnough(latencyMs: number, roundTrips: number, rttMs: number): boolean {
  return latencyMs >= Math.min(roundTrips * rttMs, MAX_LATENCY_MS)
}

/** @returns advised latency in milliseconds, a multiple of 10 */
function adviseLatencyMs(rttMs: number): number {
  return Math.min(Math.ceil((ADVISED_ROUND_TRIPS * rttMs) / 10) * 10, MAX_LATENCY_MS)
}

function addPoints<Figures extends { points: number }>(before: Figures, now: Figures): Figures {
  return { ...now, points: before.points + now.points }
}
