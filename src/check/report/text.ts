/**
 * Report for people: what was checked, each broken rule with its evidence, and what it means for players.
 *
 * @module
 */
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import type { CheckResult, CheckProgress } from '../check-stream.ts'
import type { Finding } from '../judge/judge.ts'
import type { InspectedTrack } from '../media/media-facts.ts'
import { MAX_RECORD_BYTES } from '../record.ts'
import { PLAYERS, type Fact, type Player, type Severity } from '../rules/rule.ts'
import type { Summary } from '../rules/subjects.ts'
import { COLUMNS, cut, plural, visible, wrap } from './printed-text.ts'
import { countBroken, isFetched, verdicts, worstFirst, type PlayerVerdict } from './verdicts.ts'

/** Players in the words of their users. */
export const PLAYER_NAMES: Readonly<Record<Player, string>> = {
  apple: 'Apple',
  hlsjs: 'hls.js',
  shaka: 'Shaka',
  videojs: 'video.js',
  android: 'Android',
}

const PLAYER_COLUMN = 8

interface TextOptions {
  /** Players whose effects and verdicts are printed; default all. */
  readonly players?: readonly Player[]
  /** Stream that the text is for: colored if it is a terminal and NO_COLOR is unset. Default: no color. */
  readonly stream?: Pick<WriteStream, 'isTTY' | 'hasColors'>
}

type Style = Parameters<typeof styleText>[0]
type Paint = (style: Style, text: string) => string

const OUTCOME_STYLES: Readonly<Record<'plays' | Severity, Style>> = {
  stops: ['bold', 'red'],
  stalls: 'red',
  degrades: 'yellow',
  plays: 'green',
}

/** @returns lines of at most 100 columns, the last one ended */
export function formatText(result: CheckResult, options: TextOptions = {}): string {
  const { players = PLAYERS, stream } = options
  const isColored = stream?.isTTY === true && stream.hasColors()
  const paint: Paint = (style, text) =>
    isColored ? styleText(style, text, { validateStream: false }) : text
  const failure = connectFailure(result) ?? pageFailure(result)
  if (failure !== undefined)
    return `${wrap(visible(failure))
      .map((line) => paint(['bold', 'red'], line))
      .join('\n')}\n`
  const base = new URL('.', checkedUrl(result)).href
  const lines = [
    ...wrap(visible(result.url)).map((line) => paint('bold', line)),
    ...describe(result).flatMap((line) => wrap(visible(line), '  ', '    ')),
    '',
    ...worstFirst(result.findings).flatMap((finding) => [
      ...formatFinding(finding, { base, players, paint }),
      '',
    ]),
    ...formatEnd(result, players, paint),
  ]
  return `${lines.join('\n')}\n`
}

/** @returns why nothing was received at all; undefined where there was any response */
function connectFailure(result: CheckResult): string | undefined {
  const { url, requests, failures, findings } = result
  if (requests === 0 || failures < requests) return undefined
  const [evidence] = findings.find(({ rule }) => rule.id === 'REQUEST_FAILED')?.evidence ?? []
  return evidence && `Cannot connect to ${new URL(url).origin}: ${evidence[1].text}.`
}

/** @returns why a web page could not be checked; undefined where it is none, or its stream was checked */
function pageFailure(result: CheckResult): string | undefined {
  const { url, isWebPage, requests } = result
  if (!isWebPage || isFetched(result)) return undefined
  const remedy =
    requests > 1
      ? 'Its stream has no playlist: start the stream and its encoder.'
      : 'Give the URL of the playlist, which ends in .m3u8.'
  return `This is a web page, not a playlist: ${url}. ${remedy}`
}

/** URL of the playlist that was checked; of a web page, that of its stream. */
function checkedUrl({ url, isWebPage, summary }: CheckResult): string {
  const { multivariant, renditions } = summary
  return (isWebPage ? (multivariant ?? renditions[0]?.playlist)?.url : undefined) ?? url
}

/** @returns one line of at most 100 columns, without its end */
export function progressLine(progress: CheckProgress): string {
  const { elapsedSec, seconds, requests, bytes, segments, parts, edge, broken } = progress
  const facts = [
    `${Math.floor(elapsedSec)}/${seconds} s`,
    `${plural(requests, 'request')}, ${formatBytes(bytes)}`,
    parts === 0 ? plural(segments, 'segment') : `${plural(segments, 'segment')} and ${parts} parts`,
    ...(edge === undefined ? [] : [`at ${edge}`]),
    broken === 0 ? 'nothing broken' : `${plural(broken, 'rule')} broken`,
  ]
  return cut(visible(facts.join(' · ')), COLUMNS - 1)
}

/** @returns what was checked, and with what traffic */
function describe(result: CheckResult): string[] {
  const { summary, startedAtMs, durationSec, requests, bytes, failures, unrecorded } = result
  const traffic = [
    `${durationSec.toFixed(0)} s from ${formatTime(startedAtMs)}`,
    `${plural(requests, 'request')}, ${formatBytes(bytes)}`,
    ...(failures === 0 ? [] : [`${failures} without a reply`]),
  ]
  const page = `This is a web page, not a playlist: its stream was checked, ${checkedUrl(result)}`
  const checked = isFetched(result) ? [describeMedia(summary)] : []
  const limit = `${MAX_RECORD_BYTES / 1024 ** 3} GiB`
  const lost = `The record is full at ${limit}: it lacks ${plural(unrecorded, 'request')}.`
  return [
    ...(result.isWebPage ? [page] : []),
    ...checked,
    traffic.join(' · '),
    ...(unrecorded === 0 ? [] : [lost]),
  ]
}

function describeMedia({ renditions }: Summary): string {
  const playlists = renditions.map(({ playlist }) => playlist)
  const media = renditions.map(({ tracks }) => tracks.map(formatTrack).join('+') || 'not inspected')
  const targets = distinct(playlists.map(({ targetSec }) => targetSec))
  const parts = distinct(playlists.flatMap(({ partTargetSec }) => partTargetSec ?? []))
  const isEnded = playlists.length > 0 && playlists.every(({ ended }) => ended)
  return [
    [plural(renditions.length, 'playlist'), distinct(media).join(', ')].join(': '),
    isEnded ? 'ended' : 'live',
    `target ${targets.join(', ')} s`,
    parts.length > 0 ? `low latency, parts ${parts.join(', ')} s` : 'whole segments',
  ].join(' · ')
}

function formatTrack({ kind, codec, width, height, frameRate }: InspectedTrack): string {
  const name = codec ?? `unknown ${kind}`
  if (width === undefined || height === undefined) return name
  const rate = frameRate === undefined ? '' : ` ${Number(frameRate.toFixed(2))} fps`
  return `${name} ${width}x${height}${rate}`
}

interface FindingContext {
  /** URL of the folder that the checked URL is in; facts name URLs relative to it. */
  readonly base: string
  readonly players: readonly Player[]
  readonly paint: Paint
}

function formatFinding(finding: Finding, { base, players, paint }: FindingContext): string[] {
  const { rule, count, firstAtMs, evidence } = finding
  const title = `${rule.level.padEnd(6)} ${rule.id}`
  const place = `  ${rule.clause} · ${plural(count, 'time')}, first ${formatTime(firstAtMs)}`
  const isShort = title.length + place.length <= COLUMNS
  const heading = paint(['bold', rule.level === 'MUST' ? 'red' : 'yellow'], title)
  const [facts] = evidence
  return [
    ...(isShort ? [heading + paint('dim', place)] : [heading, ...wrap(place.trim(), '  ')]),
    ...wrap(rule.requirement, '  '),
    ...(facts ?? []).flatMap((fact) => formatFact(fact, base)),
    ...players.flatMap((player) => {
      const effect = rule.effects[player]
      if (effect === undefined) return []
      const name = `  ${PLAYER_NAMES[player].padEnd(PLAYER_COLUMN)} `
      return wrap(`${effect.severity}: ${effect.text}`, name, ' '.repeat(name.length))
    }),
    ...wrap(`Remedy: ${rule.remedy}`, '  '),
  ]
}

function formatFact({ text, url, line }: Fact, base: string): string[] {
  const place = formatPlace(url, line, base)
  const margin = ' '.repeat(6)
  const fact = wrap(visible(text), '    - ', margin)
  if (place === '') return fact
  const joined = `${fact.at(-1)}  (${place})`
  if (joined.length <= COLUMNS) return [...fact.slice(0, -1), joined]
  return [...fact, `${margin}(${cut(place, COLUMNS - margin.length - 2)})`]
}

/** @returns `playlist.m3u8, line 12` */
function formatPlace(url: string | undefined, line: number | undefined, base: string): string {
  const name = url?.startsWith(base) === true ? url.slice(base.length) : url
  return visible([name, line === undefined ? undefined : `line ${line}`].filter(Boolean).join(', '))
}

function formatEnd(result: CheckResult, players: readonly Player[], paint: Paint): string[] {
  if (!isFetched(result)) {
    return [paint(['bold', 'red'], 'No playlist could be fetched: nothing was checked.')]
  }
  const all = verdicts(result.findings)
  const [musts, shoulds] = [countBroken(result, 'MUST'), countBroken(result, 'SHOULD')]
  return [
    ...players.flatMap((player) => formatVerdict(player, all[player], paint)),
    '',
    musts + shoulds === 0
      ? paint(['bold', 'green'], 'No rule is broken.')
      : paint('bold', `Broken: ${musts} MUST, ${shoulds} SHOULD.`),
  ]
}

function formatVerdict(player: Player, { outcome, rules }: PlayerVerdict, paint: Paint): string[] {
  const name = PLAYER_NAMES[player].padEnd(PLAYER_COLUMN)
  const plain = `${name} ${outcome.padEnd(8)} `
  const [first = '', ...rest] = wrap(rules.join(', '), plain, ' '.repeat(plain.length))
  const painted = `${name} ${paint(OUTCOME_STYLES[outcome], outcome)}${first.slice(name.length + 1 + outcome.length)}`
  return [painted.trimEnd(), ...rest]
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)]
}

function formatBytes(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

/** @returns UTC to the second, `2026-01-01T00:00:00Z` */
function formatTime(ms: number): string {
  return Number.isFinite(ms) ? `${new Date(ms).toISOString().slice(0, 19)}Z` : 'at an unknown time'
}
