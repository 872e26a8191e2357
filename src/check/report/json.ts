/**
 * Report for machines, described in docs/check.md. Members are only added within a format.
 *
 * @module
 */
import type { CheckResult } from '../check-result.ts'
import type { RenditionSummary } from '../summary.ts'
import { exitStatus, verdicts } from './verdicts.ts'
import { visibleJson } from './visible.ts'

const FORMAT = 1

export function formatJson(result: CheckResult): string {
  const { url, startedAtMs, durationSec, findings, summary } = result
  const { requests, bytes, failures, unrecorded } = result
  const report = {
    format: FORMAT,
    url,
    startedAt: formatDate(startedAtMs),
    durationSec,
    requests,
    bytes,
    failures,
    unrecorded,
    exitStatus: exitStatus(result),
    playlists: summary.renditions.map(describePlaylist),
    verdicts: verdicts(findings),
    findings: findings.map(({ rule, count, firstAtMs, evidence }) => ({
      id: rule.id,
      clause: rule.clause,
      level: rule.level,
      requirement: rule.requirement,
      count,
      firstAt: formatDate(firstAtMs),
      evidence: evidence.map(([claim, seen]) => ({ claim, seen })),
      effects: rule.effects,
      remedy: rule.remedy,
    })),
  }
  return `${visibleJson(report)}\n`
}

function describePlaylist(rendition: RenditionSummary) {
  const { playlist, tracks, peakBps, averageBps, mediaSec } = rendition
  return {
    url: playlist.url,
    targetDurationSec: playlist.targetSec,
    partTargetSec: playlist.partTargetSec,
    ended: playlist.ended,
    tracks: tracks.map(({ kind, codec, width, height, frameRate }) => ({
      kind,
      codec,
      width,
      height,
      frameRate,
    })),
    mediaSec,
    peakBps: Math.round(peakBps),
    averageBps: Math.round(averageBps),
  }
}

/** @returns ISO 8601 in UTC with milliseconds; undefined for a time that no date has */
function formatDate(ms: number): string | undefined {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
