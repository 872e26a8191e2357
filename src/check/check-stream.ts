/**
 * A check of a stream, live or from a record: exchanges come from `follow` or `record`, and the judge sees each.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import { isWebPage, type Exchange } from './exchange.ts'
import { createCheckClock } from './follow/check-clock.ts'
import { followStream } from './follow/follow.ts'
import { Redactor } from './follow/redactor.ts'
import { Judge, type Finding } from './judge/judge.ts'
import { describeEdge } from './playlist/media-playlist.ts'
import { openReplay, Recorder } from './record.ts'
import type { Player, Rule } from './rules/rule.ts'
import type { Summary } from './rules/subjects.ts'
import { RULES } from './rules/table.ts'

interface JudgeOptions {
  /** Player whose rules are checked: those that it suffers from; default all. */
  readonly player?: Player | 'all' | undefined
  /** Called about once a second. */
  readonly onProgress?: ((progress: CheckProgress) => void) | undefined
}

/** Options of a check of a live stream. */
export interface CheckOptions extends JudgeOptions {
  /**
   * http or https URL of a multivariant or media playlist, or of a page `/watch/{stream_id}`; may contain a user name and
   * password.
   */
  readonly url: string
  /** Duration of the check, in seconds; default 60. An ended stream ends it earlier. */
  readonly seconds?: number | undefined
  /** Ends the check early; what was found until then is returned. */
  readonly signal?: AbortSignal | undefined
  /** Size of all bodies, decoded, at which the check ends early; default none. */
  readonly maxBytes?: number | undefined
  /** Folder for a record of all exchanges, without credentials; is created. */
  readonly record?: string | undefined
}

/** Options of a check that judges a record. */
export interface ReplayOptions extends JudgeOptions {
  /** Folder of a record, to be judged again. */
  readonly replay: string
}

/** What a check has found. */
export interface CheckResult {
  /** As given, without credentials. */
  readonly url: string
  /** Whether the URL is of a web page, not of a playlist; if that plays a stream of Millrace, the stream was checked. */
  readonly isWebPage: boolean
  /** Milliseconds since 1970. */
  readonly startedAtMs: number
  /** From the first request to the end of the last response. */
  readonly durationSec: number
  /** Broken rules, in order of the table. */
  readonly findings: readonly Finding[]
  readonly summary: Summary
  /** Number of requests, failed ones included. */
  readonly requests: number
  /** Sum of all bodies, as transferred where known. */
  readonly bytes: number
  /** Requests without a whole response. */
  readonly failures: number
  /** Exchanges that the record lacks because it was full; 0 without a record. */
  readonly unrecorded: number
  /** Whether `maxBytes` ended the check. */
  readonly isCutShort: boolean
}

/** How far a check is. */
export interface CheckProgress {
  readonly elapsedSec: number
  /** Duration asked for. */
  readonly seconds: number
  readonly requests: number
  readonly bytes: number
  /** Segments and parts loaded. */
  readonly segments: number
  readonly parts: number
  /** Live edge of the first media playlist, `segment 1042, part 3`; undefined before its first version. */
  readonly edge?: string
  /** Rules broken so far. */
  readonly broken: number
}

const DEFAULT_SECONDS = 60
const MAX_SECONDS = 7 * 24 * 3600
const PROGRESS_MS = 1000

/** Rules whose breach a player suffers from. */
export function rulesFor(player: Player | 'all' = 'all'): readonly Rule[] {
  return player === 'all' ? RULES : RULES.filter(({ effects }) => effects[player] !== undefined)
}

/**
 * Follows a stream as players do, and says which rules of HLS it breaks.
 *
 * ```ts
 * import { checkStream } from 'millrace/check'
 * const { findings } = await checkStream({ url: 'https://example.com/live/master.m3u8', seconds: 60 })
 * for (const { rule, count, evidence } of findings) console.log(rule.id, rule.clause, count, evidence)
 * ```
 *
 * Requests are those of one player that plays every rendition, at most 6 at once, and a few probes. Media is inspected
 * and dropped: memory does not grow with the duration.
 *
 * @returns also where nothing could be fetched: then `summary.renditions` is empty
 * @throws {MillraceError} `USAGE` for invalid options; `RECORD_INVALID` for a folder that cannot be written or is no
 *   record
 */
export async function checkStream(options: CheckOptions | ReplayOptions): Promise<CheckResult> {
  return 'replay' in options ? replay(options) : checkLive(options)
}

async function checkLive(options: CheckOptions): Promise<CheckResult> {
  const { seconds = DEFAULT_SECONDS, signal, maxBytes, record } = options
  const url = parseUrl(options.url)
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    throw new MillraceError('USAGE', {
      message: `${seconds} seconds: expected a number from 1 to ${MAX_SECONDS}`,
    })
  }
  const shownUrl = new Redactor().redact(url)
  const check = new Check(shownUrl, seconds, options)
  const recorder = record === undefined ? undefined : new Recorder(record, shownUrl)
  let isCutShort = false
  try {
    const onExchange = (exchange: Exchange) => {
      recorder?.push(exchange)
      check.push(exchange)
    }
    const clock = createCheckClock()
    isCutShort = await followStream({ url, seconds, clock, signal, maxBytes, onExchange })
  } finally {
    recorder?.close()
  }
  return { ...check.end(), isCutShort, unrecorded: recorder?.dropped ?? 0 }
}

async function replay(options: ReplayOptions): Promise<CheckResult> {
  const { url, exchanges } = await openReplay(options.replay)
  const check = new Check(url, 0, options)
  for await (const exchange of exchanges) check.push(exchange)
  return check.end()
}

/** The judge, with the figures of the check so far. Inputs: `push` each exchange, `end` once. */
class Check {
  readonly #url: string
  readonly #seconds: number
  readonly #judge: Judge
  readonly #onProgress: JudgeOptions['onProgress']
  #isWebPage = false
  #progressAtMs = 0
  #startedAtMs = Infinity
  #endedAtMs = 0
  #requests = 0
  #bytes = 0
  #failures = 0
  #segments = 0
  #parts = 0

  /** @param seconds  duration asked for; 0 for a record */
  constructor(url: string, seconds: number, { player, onProgress }: JudgeOptions) {
    this.#url = url
    this.#seconds = seconds
    this.#judge = new Judge(rulesFor(player))
    this.#onProgress = onProgress
  }

  push(exchange: Exchange): void {
    this.#count(exchange)
    if (this.#requests === 1 && isWebPage(exchange)) {
      this.#isWebPage = true
      return
    }
    this.#judge.push(exchange)
    if (this.#onProgress === undefined) return
    if (this.#endedAtMs - this.#progressAtMs < PROGRESS_MS) return
    this.#progressAtMs = this.#endedAtMs
    const playlist = this.#judge.summary.renditions[0]?.playlist
    this.#onProgress({
      elapsedSec: this.#durationSec,
      seconds: this.#seconds || Math.round(this.#durationSec),
      requests: this.#requests,
      bytes: this.#bytes,
      segments: this.#segments,
      parts: this.#parts,
      broken: this.#judge.findings.length,
      ...(playlist !== undefined && { edge: describeEdge(playlist) }),
    })
  }

  end(): CheckResult {
    this.#judge.end()
    return {
      url: this.#url,
      isWebPage: this.#isWebPage,
      startedAtMs: this.#requests === 0 ? 0 : this.#startedAtMs,
      durationSec: this.#durationSec,
      findings: this.#judge.findings,
      summary: this.#judge.summary,
      requests: this.#requests,
      bytes: this.#bytes,
      failures: this.#failures,
      unrecorded: 0,
      isCutShort: false,
    }
  }

  get #durationSec(): number {
    return this.#requests === 0 ? 0 : (this.#endedAtMs - this.#startedAtMs) / 1000
  }

  #count({ role, sentAtMs, reply }: Exchange): void {
    this.#startedAtMs = Math.min(this.#startedAtMs, sentAtMs)
    this.#endedAtMs = Math.max(this.#endedAtMs, reply?.endedAtMs ?? sentAtMs)
    this.#requests++
    if (reply === undefined) {
      this.#failures++
      return
    }
    this.#bytes += reply.encodedBytes ?? reply.body.length
    if (reply.status >= 300) return
    if (role === 'segment') this.#segments++
    if (role === 'part' || role === 'hint') this.#parts++
  }
}

/** @returns the URL without fragment; credentials stay */
function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new MillraceError('USAGE', {
      message: 'expected an http or https URL of a playlist, such as https://example.com/live.m3u8',
    })
  }
  url.hash = ''
  return url.href
}
