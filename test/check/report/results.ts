/**
 * Results of checks, written by hand.
 *
 * @module
 */
import type { CheckResult } from '../../../src/check/check-stream.ts'
import type { Finding } from '../../../src/check/judge/judge.ts'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'
import type { Evidence, Rule, RuleText } from '../../../src/check/rules/rule.ts'
import type { RenditionFigures } from '../../../src/check/rules/subjects.ts'

const START_MS = Date.UTC(2026, 0, 1, 12)
export const BASE = 'https://media.example/video/studio/'

export function rule(text: Partial<RuleText> = {}): Rule {
  return {
    id: 'PART_OVER_TARGET',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement: 'No part is longer than PART-TARGET.',
    effects: {
      apple: { severity: 'stops', text: 'Refuses the playlist.' },
      hlsjs: { severity: 'degrades', text: 'Estimates the live edge wrongly.' },
    },
    remedy: 'Announce the longest part that can occur as PART-TARGET.',
    ...text,
    on: 'playlist',
    check: () => [],
  }
}

export const PART_EVIDENCE: Evidence = [
  { text: 'PART-TARGET is 0.20800 s', url: `${BASE}playlist.m3u8`, line: 5 },
  { text: 'this part lasts 0.23333 s', url: `${BASE}playlist.m3u8`, line: 21 },
]

export function finding(text: Partial<RuleText> = {}, facts: Partial<Finding> = {}): Finding {
  const evidence = [PART_EVIDENCE]
  return { rule: rule(text), count: 3, firstAtMs: START_MS + 3200, evidence, ...facts }
}

const VIDEO = parseMediaPlaylist(
  '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.208\n',
  `${BASE}playlist.m3u8`,
)

const AUDIO = parseMediaPlaylist(VIDEO.text, `${BASE}audio-2.m3u8`)

const TIMES = { firstDecodeSec: 0, nextDecodeSec: 2, startSec: 0, endSec: 2 }
const FRAMES = {
  ...{ frames: 30, keyFrames: 1, startsWithKeyFrame: true, longestFrameSec: 0.067 },
  ...TIMES,
}

const SOUNDTRACK = { kind: 'audio', id: 257, codec: 'mp4a.40.2', ...FRAMES } as const

const RENDITIONS: readonly RenditionFigures[] = [
  {
    playlist: VIDEO,
    variants: [],
    alternatives: [],
    marks: new Map(),
    tracks: [
      {
        ...{ kind: 'video', id: 256, codec: 'avc1.64000a', width: 160, height: 90 },
        ...{ frameRate: 15, ...FRAMES },
      },
      SOUNDTRACK,
    ],
    peakBps: 101_234.5,
    averageBps: 90_000.4,
    mediaSec: 60,
  },
  {
    ...{ playlist: AUDIO, variants: [], alternatives: [], marks: new Map(), tracks: [SOUNDTRACK] },
    ...{ peakBps: 24_000, averageBps: 23_000, mediaSec: 60 },
  },
]

export function result(findings: readonly Finding[], rest: Partial<CheckResult> = {}): CheckResult {
  return {
    url: `${BASE}master.m3u8`,
    isWebPage: false,
    startedAtMs: START_MS,
    durationSec: 60.04,
    findings,
    summary: { multivariant: undefined, renditions: RENDITIONS, durationSec: 60.04 },
    requests: 912,
    bytes: 1_234_567,
    failures: 0,
    unrecorded: 0,
    isCutShort: false,
    ...rest,
  }
}

/** Result of a check whose server does not answer. */
export function nothingFetched(): CheckResult {
  return result([], {
    durationSec: 10.2,
    summary: { multivariant: undefined, renditions: [], durationSec: 10.2 },
    requests: 3,
    bytes: 0,
    failures: 3,
  })
}
