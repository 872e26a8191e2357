/**
 * Streams with several video tracks, audio tracks or programs.
 *
 * @module
 */
import { AAC, lavfi, OTHER_TONE, TEST_PATTERN, TONE, X264, type ClipFolder } from '../clip.ts'
import type { MediaCase } from '../media-case.ts'
import { H264_AAC, USUAL } from '../sources.ts'

const twoPrograms = (clips: ClipFolder) =>
  clips.encode([
    ...[...TEST_PATTERN, ...TONE, ...lavfi('testsrc2=s=160x90:r=30'), ...OTHER_TONE],
    ...['-map', '0', '-map', '1', '-map', '2', '-map', '3', ...X264, ...AAC],
    ...['-program', 'program_num=1:st=0:st=1', '-program', 'program_num=2:st=2:st=3'],
  ])

export const TRACKS: readonly MediaCase[] = [
  {
    name: 'two-audio',
    input: 'audio in two languages: the second becomes a rendition',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...OTHER_TONE, '-map', '0', '-map', '1', '-map', '2'],
        ...[...X264, ...AAC, '-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
      ]),
    playlist: USUAL,
    codecs: H264_AAC,
    renditions: { 'audio-2.m3u8': { videoFrames: 0, audioFrames: 376, tracks: '258:f' } },
    multivariantContains: ['LANGUAGE="en"', 'LANGUAGE="fr"', 'URI="audio-2.m3u8"', 'AUDIO="audio"'],
  },
  {
    name: 'two-audio-codecs',
    input: 'AAC in English, AC-3 in English and French: a group for each codec, each in English',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...OTHER_TONE],
        ...['-map', '0', '-map', '1', '-map', '1', '-map', '2', ...X264, ...AAC],
        ...['-c:a:1', 'ac3', '-c:a:2', 'ac3', '-metadata:s:a:0', 'language=eng'],
        ...['-metadata:s:a:1', 'language=eng', '-metadata:s:a:2', 'language=fra'],
      ]),
    playlist: USUAL,
    codecs: H264_AAC,
    renditions: { 'audio-2.m3u8': { videoFrames: 0, audioFrames: 250, tracks: '258:81' } },
    warnings: ['AUDIO_CODECS_DIFFER'],
    multivariantContains: ['AUDIO="audio"', 'ac-3', 'AUDIO="audio-ac3"'],
  },
  {
    name: 'three-sizes',
    input: 'video in three sizes and audio in two languages: variants and renditions',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...OTHER_TONE, '-map', '0', '-map', '0', '-map', '0'],
        ...['-map', '1', '-map', '2', ...X264, ...AAC],
        ...['-s:v:0', '320x180', '-s:v:1', '240x136', '-s:v:2', '160x90'],
        ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
      ]),
    playlist: { ...USUAL, tracks: '256:1b,259:f' },
    renditions: {
      'video-2.m3u8': { videoFrames: 240, audioFrames: 376, tracks: '257:1b,259:f' },
      'video-3.m3u8': { videoFrames: 240, audioFrames: 376, tracks: '258:1b,259:f' },
      'audio-2.m3u8': { videoFrames: 0, audioFrames: 376, tracks: '260:f' },
    },
    multivariantContains: [
      ...['URI="audio-2.m3u8"', 'RESOLUTION=320x180', 'playlist.m3u8'],
      ...['RESOLUTION=240x136', 'video-2.m3u8', 'RESOLUTION=160x90', 'video-3.m3u8'],
    ],
  },
  {
    name: 'two-programs',
    input: 'two programs: the first with video is carried',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...OTHER_TONE, '-map', '2', '-map', '0', '-map', '1'],
        ...[...X264, ...AAC, '-program', 'program_num=1:st=0'],
        ...['-program', 'program_num=2:st=1:st=2'],
      ]),
    playlist: { ...USUAL, tracks: '257:1b,258:f' },
  },
  {
    name: 'program-by-number',
    input: 'two programs: the one named by TS_PROGRAM or the stream key is carried',
    make: twoPrograms,
    options: { program: 2 },
    playlist: { ...USUAL, tracks: '258:1b,259:f' },
  },
  {
    name: 'all-programs',
    input: 'two programs joined into one: the second becomes a variant',
    make: twoPrograms,
    options: { program: 'all' },
    playlist: { ...USUAL, tracks: '256:1b,257:f' },
    renditions: {
      'video-2.m3u8': { videoFrames: 240, audioFrames: 376, tracks: '258:1b,257:f' },
      'audio-2.m3u8': { videoFrames: 0, audioFrames: 376, tracks: '259:f' },
    },
  },
]
