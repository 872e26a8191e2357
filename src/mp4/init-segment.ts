/**
 * Init segment of a CMAF track (ISO/IEC 23000-19 7.3.2.1; 14496-12 8.2): its format, without samples.
 *
 *   ftyp                                brands (4.3)
 *   moov                                (8.2.1)
 *     mvhd                              (8.2.2)
 *     trak                              (8.3.1)
 *       tkhd                            (8.3.2)
 *       mdia
 *         mdhd                          timescale and language (8.4.2)
 *         hdlr                          (8.4.3)
 *         minf
 *           vmhd | smhd                 (12.1.2, 12.2.2)
 *           dinf, dref, url             media in the same file (8.7.1, 8.7.2)
 *           stbl                        (8.5.1)
 *             stsd                      sample entry (8.5.2)
 *             stts, stsc, stsz, stco    empty (8.6.1.2, 8.7.4, 8.7.3.2, 8.7.5)
 *     mvex, trex                        (8.8.1, 8.8.3)
 *
 * There is no edit list: audio and video stay on the clock of the encoder.
 *
 * @module
 */
import type { AudioFormat } from './audio-format.ts'
import { encodeAudioSampleEntry } from './audio-sample-entry.ts'
import { ascii, box, fullBox, u16, u32 } from './box.ts'
import { VIDEO_TIMESCALE } from './track-clock.ts'
import type { VideoFormat } from './video-format.ts'
import { encodeVideoSampleEntry } from './video-sample-entry.ts'

export type MediaFormat = VideoFormat | AudioFormat

/** The only track of a file. */
interface Track {
  /** `track_ID`, from 1. */
  readonly id: number
  readonly format: MediaFormat
  /** ISO 639-2 code of three letters; undefined if unknown. */
  readonly language?: string
}

const MOVIE_TIMESCALE = 1000

/** Transformation matrix of identity (8.2.2.3). */
const IDENTITY = u32(0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000)

/** `flags` of tkhd: enabled, in the movie and its preview. */
const TRACK_FLAGS = 7

/** `flags` of `url `: media in the same file. */
const SELF_CONTAINED = 1

/** Full scale of volume, 8.8. */
const FULL_VOLUME = 0x0100

/** @returns ticks per second of the track's times */
export function timescaleOf(format: MediaFormat): number {
  return isVideo(format) ? VIDEO_TIMESCALE : format.timescale
}

export function encodeInitSegment(track: Track): Buffer {
  return Buffer.concat([
    box('ftyp', ascii('cmfc'), u32(0), ascii('iso6'), ascii('cmfc'), ascii('mp41')),
    box(
      'moov',
      encodeMovieHeader(track),
      box('trak', encodeTrackHeader(track), encodeMedia(track)),
      box('mvex', fullBox('trex', 0, 0, u32(track.id, 1, 0, 0, 0))),
    ),
  ])
}

function encodeMovieHeader({ id }: Track): Buffer {
  return fullBox(
    'mvhd',
    0,
    0,
    u32(0, 0, MOVIE_TIMESCALE, 0),
    u32(0x0001_0000), // rate 1.0
    u16(FULL_VOLUME, 0),
    u32(0, 0),
    IDENTITY,
    Buffer.alloc(24),
    u32(id + 1),
  )
}

function encodeTrackHeader({ id, format }: Track): Buffer {
  const [width, height] = isVideo(format) ? presentationSize(format) : [0, 0]
  return fullBox(
    'tkhd',
    0,
    TRACK_FLAGS,
    u32(0, 0, id, 0, 0, 0, 0),
    u16(0, 0, isVideo(format) ? 0 : FULL_VOLUME, 0),
    IDENTITY,
    u16(width, 0, height, 0), // 16.16
  )
}

/** Width and height with square pixels (8.3.2.3). */
function presentationSize({ sequence }: VideoFormat): readonly [number, number] {
  const { width, height } = sequence.video
  const ratio = sequence.signal.sampleAspectRatio ?? { width: 1, height: 1 }
  return [Math.min(0xffff, Math.round((width * ratio.width) / ratio.height)), height]
}

function encodeMedia({ format, language }: Track): Buffer {
  const video = isVideo(format)
  const handler = video ? 'vide' : 'soun'
  const name = video ? 'VideoHandler' : 'SoundHandler'
  return box(
    'mdia',
    fullBox('mdhd', 0, 0, u32(0, 0, timescaleOf(format), 0), u16(packLanguage(language), 0)),
    fullBox('hdlr', 0, 0, u32(0), ascii(handler), u32(0, 0, 0), ascii(`${name}\0`)),
    box(
      'minf',
      video ? fullBox('vmhd', 0, 1, u16(0, 0, 0, 0)) : fullBox('smhd', 0, 0, u16(0, 0)),
      box('dinf', fullBox('dref', 0, 0, u32(1), fullBox('url ', 0, SELF_CONTAINED))),
      box(
        'stbl',
        fullBox(
          'stsd',
          0,
          0,
          u32(1),
          video ? encodeVideoSampleEntry(format) : encodeAudioSampleEntry(format),
        ),
        fullBox('stts', 0, 0, u32(0)),
        fullBox('stsc', 0, 0, u32(0)),
        fullBox('stsz', 0, 0, u32(0, 0)),
        fullBox('stco', 0, 0, u32(0)),
      ),
    ),
  )
}

/** Packs three letters in 5 bits each (8.4.2.3); anything else is `und`. */
function packLanguage(language = ''): number {
  const letters = /^[a-z]{3}$/.test(language) ? language : 'und'
  return ascii(letters).reduce((bits, letter) => (bits << 5) | (letter - 0x60), 0)
}

export function isVideo(format: MediaFormat): format is VideoFormat {
  return format.codec === 'h264' || format.codec === 'h265'
}
