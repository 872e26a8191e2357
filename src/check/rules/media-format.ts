/**
 * Rules on containers: what the bytes of segments and parts look like.
 *
 * @module
 */
import type { InspectedMedia } from './subjects.ts'
import type { FaultKind } from '../media/media-facts.ts'
import { degrades, fact, stops } from './evidence.ts'
import { contradiction, content, listing, nameMedia } from './media-evidence.ts'
import type { RuleOn, RuleText } from './rule.ts'

/** Rule that inspection itself finds broken. */
function onFault(
  kind: FaultKind,
  text: RuleText,
  isMeant: (media: InspectedMedia) => boolean = () => true,
): RuleOn<'media'> {
  return {
    ...text,
    on: 'media',
    check: (media) => {
      const { segment, part, facts } = media
      const fault = facts.faults.find((fault) => fault.kind === kind)
      if (fault === undefined || segment.gap || part?.gap === true || !isMeant(media)) return []
      return contradiction(
        listing(media, `${nameMedia(media)} is listed`),
        content(media, fault.text),
      )
    },
  }
}

export const MEDIA_FORMAT: readonly RuleOn<'media'>[] = [
  onFault('format', {
    id: 'FORMAT_UNKNOWN',
    clause: 'RFC 8216bis 3.1',
    level: 'MUST',
    requirement: 'Each segment and part is MPEG-TS, fMP4, packed audio or WebVTT.',
    effects: { hlsjs: stops('Fails: "Failed to find demuxer by probing fragment data".') },
    remedy: 'Check that the URL leads to media, not to a page or an error.',
  }),
  {
    id: 'MAP_MISSING',
    clause: 'RFC 8216bis 3.1.2',
    level: 'MUST',
    requirement: 'Each fMP4 segment has an EXT-X-MAP.',
    effects: {},
    remedy: 'Write EXT-X-MAP with the init segment before the first segment.',
    on: 'media',
    check: (media) => {
      const { segment, part, facts } = media
      const isKnown = facts.container !== 'fmp4' || segment.map !== undefined
      if (isKnown || segment.gap || part?.gap === true) return []
      const seen = content(media, `${nameMedia(media)} is fMP4`)
      return contradiction(listing(media, 'no EXT-X-MAP applies'), seen)
    },
  },
  onFault('box', {
    id: 'BOXES_BROKEN',
    clause: 'RFC 8216bis 3.1.2, ISO/IEC 14496-12 4.2',
    level: 'MUST',
    requirement:
      'Boxes fit, each fragment has a tfdt for each track of the init segment, and its samples are in mdat.',
    effects: {},
    remedy: 'Write whole fragments, with one moof and its mdat in the same segment or part.',
  }),
  onFault('parameter-sets', {
    id: 'PARAMETER_SETS_IN_BAND',
    clause: 'ISO/IEC 14496-15 5.4.1, 8.4.1',
    level: 'MUST',
    requirement: 'Under avc1 and hvc1, parameter sets are in the init segment, not in samples.',
    effects: {},
    remedy:
      'Take VPS, SPS and PPS out of the samples, and write a new EXT-X-MAP and EXT-X-DISCONTINUITY where they change.',
  }),
  onFault('sets-missing', {
    id: 'PARAMETER_SETS_MISSING',
    clause: 'ISO/IEC 14496-15 5.4.1, 8.4.1',
    level: 'MUST',
    requirement: 'Under avc1 and hvc1, EXT-X-MAP has each parameter set that samples refer to.',
    effects: { hlsjs: stops('Ends with "mediaSourceRequiresReset": Chrome cannot decode it.') },
    remedy:
      'Write all VPS, SPS and PPS into the init segment, and a new EXT-X-MAP and EXT-X-DISCONTINUITY where they change.',
  }),
  onFault('sample-frames', {
    id: 'SAMPLE_FRAMES',
    clause: 'ISO/IEC 14496-15 5.3.2, 8.3.2',
    level: 'MUST',
    requirement: 'Each sample of video is one frame.',
    effects: { hlsjs: stops('Ends with "mediaSourceRequiresReset": Chrome cannot decode it.') },
    remedy:
      'Find the access units in the bitstream: a PES packet may have many of them, or a part of one.',
  }),
  {
    id: 'TS_PARTS',
    clause: 'Shaka and video.js, RFC 8216bis 4.4.4.9',
    level: 'SHOULD',
    requirement: 'Parts are fMP4.',
    effects: {
      shaka: stops('Ends with error 3018.'),
      videojs: stops('Ends with an error: it cannot append the part.'),
    },
    remedy: 'Write low latency as CMAF, and leave EXT-X-PART out of playlists of MPEG-TS.',
    on: 'media',
    check: ({ playlist, part, facts }) => {
      if (part === undefined || facts.container !== 'mpegts') return []
      return contradiction(
        fact(playlist, 'the playlist has parts', part),
        fact(playlist, 'they are MPEG-TS'),
      )
    },
  },
  onFault('sync', {
    id: 'TS_SYNC',
    clause: 'ISO/IEC 13818-1 2.4.3.2',
    level: 'MUST',
    requirement: 'MPEG-TS consists of whole packets of 188 bytes that begin with 47.',
    effects: { hlsjs: degrades('Loses the rest of the segment behind the wrong byte.') },
    remedy: 'Cut at packets, and resynchronize the input before it is segmented.',
  }),
  onFault(
    'tables',
    {
      id: 'TS_TABLES_MISSING',
      clause: 'RFC 8216bis 3.1.1',
      level: 'MUST',
      requirement: 'Each MPEG-TS segment has PAT and PMT before its media, or an EXT-X-MAP.',
      effects: { hlsjs: stops('Takes the segment for MP3 and finds no frames.') },
      remedy: 'Repeat PAT and PMT at the start of each segment.',
    },
    ({ part }) => part === undefined,
  ),
  onFault('programs', {
    id: 'TS_PROGRAMS',
    clause: 'RFC 8216bis 3.1.1',
    level: 'MUST',
    requirement: 'MPEG-TS has one program.',
    effects: { hlsjs: degrades('Plays the first program.') },
    remedy: 'Write a stream for each program.',
  }),
  onFault('change', {
    id: 'CHANGE_INSIDE',
    clause: 'RFC 8216bis 4.4.4.3',
    level: 'MUST',
    requirement: 'Tracks and their format do not change inside a segment or part.',
    effects: {},
    remedy: 'Cut where the format changes, and write EXT-X-DISCONTINUITY.',
  }),
  onFault('continuity', {
    id: 'TS_CONTINUITY',
    clause: 'RFC 8216bis 3, ISO/IEC 13818-1 2.4.3.3',
    level: 'MUST',
    requirement: 'Continuity counters count each packet.',
    effects: {},
    remedy: 'Look for packet loss before the packager, and renumber the counters.',
  }),
  onFault('transport-error', {
    id: 'TS_TRANSPORT_ERROR',
    clause: 'ISO/IEC 13818-1 2.4.3.3, ETSI TR 101 290 2.1',
    level: 'SHOULD',
    requirement: 'No packet has transport_error_indicator set.',
    effects: {},
    remedy: 'Look for reception errors before the packager, and drop such packets.',
  }),
  onFault('timestamp', {
    id: 'AUDIO_TIMESTAMP_MISSING',
    clause: 'RFC 8216bis 3.1.3',
    level: 'MUST',
    requirement:
      'Packed audio begins with an ID3 PRIV frame that has the time of its first sample.',
    effects: {},
    remedy: 'Write an ID3 tag with com.apple.streaming.transportStreamTimestamp.',
  }),
  onFault(
    'tables',
    {
      id: 'PART_TABLES_MISSING',
      clause: 'RFC 8216bis 3.1.1',
      level: 'SHOULD',
      requirement: 'Each MPEG-TS part has PAT and PMT before its media, or an EXT-X-MAP.',
      effects: { hlsjs: degrades('Starts at the part as if it were MP3 and finds no frames.') },
      remedy: 'Repeat PAT and PMT at the start of each part.',
    },
    ({ part }) => part !== undefined,
  ),
  onFault('pes-cut', {
    id: 'TS_PES_CUT',
    clause: 'ISO/IEC 13818-1 2.4.3.6',
    level: 'SHOULD',
    requirement: 'A segment or part begins and ends with whole PES packets on each PID.',
    effects: { hlsjs: degrades('Decodes the cut frame without its end.') },
    remedy: 'Put a PES packet into the segment or part in which it begins.',
  }),
  onFault('pts', {
    id: 'TS_PTS_MISSING',
    clause: 'ISO/IEC 13818-1 2.7.4',
    level: 'SHOULD',
    requirement: 'Each PES packet of audio and video has a PTS.',
    effects: {},
    remedy: 'Configure the muxer to write a PTS for each frame.',
  }),
  onFault('table-order', {
    id: 'TS_TABLES_NOT_FIRST',
    clause: 'RFC 8216bis 3.1.1',
    level: 'SHOULD',
    requirement: 'The first two packets of an MPEG-TS segment or part are PAT and PMT.',
    effects: {},
    remedy: 'Write no SDT, or write it behind PAT and PMT.',
  }),
  onFault('null-packets', {
    id: 'TS_NULL_PACKETS',
    clause: 'Millrace',
    level: 'SHOULD',
    requirement: 'At most 2 % of the packets are null packets, which every viewer pays for.',
    effects: {},
    remedy: 'Drop null packets, or write a variable bit rate.',
  }),
]
