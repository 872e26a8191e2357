/**
 * Report for continuous integration, as JUnit XML: a test case for each rule, which fails for a broken MUST and is
 * skipped, with the evidence in its output, for a broken SHOULD.
 *
 * @module
 */
import type { CheckResult } from '../check-result.ts'
import type { Finding } from '../judge.ts'
import type { Fact, Rule, RuleText } from '../rules/rule.ts'
import { plural } from './columns.ts'
import { isFetched } from './verdicts.ts'
import { visible } from './visible.ts'

/** @param rules  all rules that were judged by, broken or not */
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
  const broken = (level: string) =>
    result.findings.filter(({ rule }) => rule.level === level).length
  const start = new Date(result.startedAtMs)
  const totals = {
    tests: cases.length,
    failures: broken('MUST'),
    errors: isFetched(result) ? 0 : 1,
    skipped: broken('SHOULD'),
    time: result.durationSec.toFixed(3),
  }
  const suite = {
    name: `millrace check ${result.url}`,
    ...totals,
    ...(Number.isNaN(start.getTime()) ? {} : { timestamp: start.toISOString().slice(0, 19) }),
  }
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes(totals)}>`,
    `  <testsuite${attributes(suite)}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function formatFetch(result: CheckResult): string {
  const message = 'no playlist could be fetched'
  const error = isFetched(result) ? '' : `<error${attributes({ message, type: 'FETCH' })}/>`
  return testCase({ id: 'FETCH' }, error)
}

function formatCase(rule: Rule, finding: Finding | undefined): string {
  if (finding === undefined) return testCase(rule, '')
  const message = `${rule.requirement} Broken ${plural(finding.count, 'time')}.`
  const text = escape(formatEvidence(finding))
  return rule.level === 'MUST'
    ? testCase(rule, `<failure${attributes({ message, type: rule.id })}>${text}</failure>`)
    : testCase(rule, `<skipped${attributes({ message })}/><system-out>${text}</system-out>`)
}

function testCase(
  { id, clause }: Pick<RuleText, 'id'> & { clause?: string },
  content: string,
): string {
  const name = clause === undefined ? id : `${id} (${clause})`
  const start = `    <testcase${attributes({ name, classname: 'millrace.check', time: 0 })}`
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

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escape(visible(String(value)))}"`)
    .join('')
}

/** @param text  without characters that XML forbids */
function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
