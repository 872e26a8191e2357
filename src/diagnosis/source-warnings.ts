/**
 * Warnings about the media of an encoder. Check numbers are those of ETSI TR 101 290 5.2.
 *
 * @module
 */
import type { Track } from '../mpegts/track.ts'
import { figure, mebibytes, programs, tracks } from './figures.ts'
import { EVENT_HOLD_SEC, isSome, perSegment, rule, type Events } from './warning-rule.ts'

/** Tolerates audio 0.5 s ahead of video, and video 1.5 s ahead, since muxers send video early for decoder buffers. */
const isSkewed = (offsetSec: number) => offsetSec > 0.5 || offsetSec < -1.5

export const SOURCE_WARNINGS = {
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
  GOP_TOO_LONG: rule<{ gopSec: number; targetSec: number }>({
    holdSec: perSegment,
    message: ({ gopSec, targetSec }) =>
      `Key frames are over ${figure(gopSec)} s apart (limit ${targetSec} s). Viewers join late. Set the keyframe interval to 2 s (OBS: Output > Keyframe Interval; ffmpeg: -g 60).`,
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
  // 1.6
  TRACK_SILENT: rule<{ track: Track }>({
    message: ({ track: { kind, pid } }) =>
      `No ${kind} for 5 s on PID ${pid}, which the PMT lists. Viewers get none. Check the ${kind} source, or switch the track off (ffmpeg: -an, -vn).`,
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
      `In playlist.m3u8 alone: ${tracks(all)}: CMAF does not carry it. Viewers of master.m3u8 miss it. Send AAC, MP3, AC-3 or E-AC-3.`,
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
}

function addPoints<Figures extends { points: number }>(before: Figures, now: Figures): Figures {
  return { ...now, points: before.points + now.points }
}
