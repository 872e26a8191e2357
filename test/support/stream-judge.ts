/**
 * The judge of `millrace check` with the house rules, for playlists and segments that a test has at hand.
 *
 * @module
 */
import type { Exchange } from '../../src/check/exchange.ts'
import { Judge } from '../../src/check/judge/judge.ts'
import type { Fact, Rule } from '../../src/check/rules/rule.ts'
import { RULES } from '../../src/check/rules/table.ts'
import { houseRules, type HouseRulesOptions } from './house-rules.ts'

const ORIGIN = 'https://media.example/video/studio/'

/** Distance of two replies without a time of their own. */
const TICK_MS = 0.001

/** Subjects that only HTTP has. */
const OF_HTTP: ReadonlySet<string> = new Set(['reply', 'failure'])

export interface StreamJudgeOptions extends HouseRulesOptions {
  /** Ids of rules that the test breaks on purpose. */
  readonly except?: readonly string[]
}

/**
 * Inputs: `multivariant`, `playlist`, `init` and `segment` in the order of a client's requests. URIs are relative to one folder.
 * Each returns what is newly found: rule, clause and evidence.
 */
export class StreamJudge {
  readonly #judge: Judge
  readonly #counts = new Map<Rule, number>()
  #nowMs = 0

  constructor({ except = [], ...options }: StreamJudgeOptions = {}) {
    const isJudged = ({ id, on }: Rule) =>
      !OF_HTTP.has(on) && (on !== 'reload' || options.isTimed === true) && !except.includes(id)
    this.#judge = new Judge([...RULES, ...houseRules(options)].filter(isJudged))
  }

  /** @param atMs  time of the version, milliseconds since 1970; default a tick after the input before */
  multivariant(text: string, atMs?: number): string[] {
    return this.#load({ role: 'multivariant', url: `${ORIGIN}master.m3u8` }, text, atMs)
  }

  /** @param atMs  time of the version, milliseconds since 1970; default a tick after the input before */
  playlist(uri: string, text: string, atMs?: number): string[] {
    return this.#load({ role: 'playlist', url: ORIGIN + uri }, text, atMs)
  }

  /** @param playlistUri  media playlist that names the init segment */
  init(uri: string, bytes: Buffer, playlistUri: string, atMs?: number): string[] {
    const playlistUrl = ORIGIN + playlistUri
    return this.#load({ role: 'init', url: ORIGIN + uri, playlistUrl }, bytes, atMs)
  }

  /** @param playlistUri  media playlist that lists the segment */
  segment(uri: string, bytes: Buffer, playlistUri: string, atMs?: number): string[] {
    const playlistUrl = ORIGIN + playlistUri
    return this.#load({ role: 'segment', url: ORIGIN + uri, playlistUrl }, bytes, atMs)
  }

  #load(
    request: Pick<Exchange, 'role' | 'url' | 'playlistUrl'>,
    body: string | Buffer,
    atMs = 0,
  ): string[] {
    this.#nowMs = Math.max(atMs, this.#nowMs + TICK_MS)
    const nowMs = this.#nowMs
    this.#judge.push({
      ...request,
      ...{ method: 'GET', headers: {}, sentAtMs: nowMs },
      reply: {
        ...{ status: 200, headers: {}, url: request.url, protocol: 'h2', longestPauseMs: 0 },
        ...{ body: Buffer.from(body), headersAtMs: nowMs, endedAtMs: nowMs },
      },
    })
    return this.#takeNews()
  }

  #takeNews(): string[] {
    return this.#judge.findings.flatMap(({ rule, count, evidence }) => {
      const known = this.#counts.get(rule) ?? 0
      if (count === known) return []
      this.#counts.set(rule, count)
      const name = `${rule.id} (${rule.clause})`
      const news = evidence.slice(known).map((facts) => `${name}: ${facts.map(format).join('; ')}`)
      return news.length > 0 ? news : [`${name}: for the ${count}th time`]
    })
  }
}

function format({ text, line }: Fact): string {
  return line === undefined ? text : `${text} (line ${line})`
}
