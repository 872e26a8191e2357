/**
 * Reports for machines: JSON, described in docs/check.md, and JUnit XML for continuous integration.
 *
 * @module
 */
import type { CheckResult } from '../check-stream.ts'
import type { RenditionFigures } from '../rules/subjects.ts'
import { countBroken, exitStatus, isFetched, verdicts } from './verdicts.ts'
import { plural, visible, visibleJson } from './printed-text.ts'
import type { Finding } from '../judge/judge.ts'
import type { Fact, Rule, RuleText } from '../rules/rule.ts'

const FORMAT = 1

/** Members are only added within a format. */
export function formatJson(result: CheckResult): string {
  const { url, isWebPage, startedAtMs, durationSec, findings, summary } = result
  const { requests, bytes, failures, unrecorded } = result
  const report = {
    format: FORMAT,
    url,
    webPage: isWebPage,
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

function describePlaylist(rendition: RenditionFigures) {
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

/**
 * JUnit XML: a test case for each rule; a broken MUST is a failure, a broken SHOULD is skipped with its evidence as output.
 *
 * @param rules  all rules that were judged by, broken or not
 */
export function formatJunit(result: CheckResult, rules: readonly Rule[]): string {
  const cases = [
    formatFetch(result),
    ...rules.map((rule) =>
      formatCase(
        rule,
        result.findings.find((finding) => finding.rule.id === rule.id),
      ),
    ),
  ]
  const start = new Date(result.startedAtMs)
  const totals = {
    tests: cases.length,
    failures: countBroken(result, 'MUST'),
    errors: isFetched(result) ? 0 : 1,
    skipped: countBroken(result, 'SHOULD'),
    time: result.durationSec.toFixed(3),
  }
  const suite = {
    name: `millrace check ${result.url}`,
    ...totals,
    ...(Number.isNaN(start.getTime()) ? {} : { timestamp: start.toISOString().slice(0, 19) }),
  }
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${xmlAttributes(totals)}>`,
    `  <testsuite${xmlAttributes(suite)}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function formatFetch(result: CheckResult): string {
  const message = result.isWebPage
    ? 'this is a web page, not a playlist'
    : 'no playlist could be fetched'
  const error = isFetched(result) ? '' : `<error${xmlAttributes({ message, type: 'FETCH' })}/>`
  return testCase({ id: 'FETCH' }, error)
}

function formatCase(rule: Rule, finding: Finding | undefined): string {
  if (finding === undefined) return testCase(rule, '')
  const message = `${rule.requirement} Broken ${plural(finding.count, 'time')}.`
  const text = escapeXml(formatEvidence(finding))
  return rule.level === 'MUST'
    ? testCase(rule, `<failure${xmlAttributes({ message, type: rule.id })}>${text}</failure>`)
    : testCase(rule, `<skipped${xmlAttributes({ message })}/><system-out>${text}</system-out>`)
}

function testCase(
  { id, clause }: Pick<RuleText, 'id'> & { clause?: string },
  content: string,
): string {
  const name = clause === undefined ? id : `${id} (${clause})`
  const start = `    <testcase${xmlAttributes({ name, classname: 'millrace.check', time: 0 })}`
  return content === '' ? `${start}/>` : `${start}>${content}</testcase>`
}

function formatEvidence({ rule, evidence }: Finding): string {
  const facts = evidence.flatMap(([claim, seen]) => [formatFact(claim), formatFact(seen), ''])
  return [`${rule.level}, ${rule.clause}`, '', ...facts, `Remedy: ${rule.remedy}`].join('\n')
}

function formatFact({ text, url, line }: Fact): string {
  const place = [url, line === undefined ? undefined : `line ${line}`].filter(Boolean).join(', ')
  return visible(place === '' ? `- ${text}` : `- ${text} (${place})`)
}

function xmlAttributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(visible(String(value)))}"`)
    .join('')
}

/** @param text  without characters that XML forbids */
function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
