/**
 * A check of a stream, live or from a record.
 *
 * @module
 */
import { machineClock } from '../clock.ts'
import { MillraceError } from '../errors.ts'
import type { CheckResult, Progress } from './check-result.ts'
import type { Exchange } from './exchange.ts'
import { follow } from './follow/follow.ts'
import { Redactor } from './follow/redactor.ts'
import { Judge } from './judge.ts'
import { describeEdge } from './playlist/media-playlist.ts'
import { Recorder } from './record/recorder.ts'
import { openReplay } from './record/replay.ts'
import type { Player, Rule } from './rules/rule.ts'
import { RULES } from './rules/table.ts'
import { Tally } from './tally.ts'

interface JudgeOptions {
  /** Player whose rules are checked: those that it suffers from; default all. */
  readonly player?: Player | 'all' | undefined
  /** Called about once a second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

export interface CheckOptions extends JudgeOptions {
  /** http or https URL of a multivariant or media playlist; may contain a user name and password. */
  readonly url: string
  /** Duration of the check, in seconds; default 60. An ended stream ends it earlier. */
  readonly seconds?: number | undefined
  /** Ends the check early; what was found until then is returned. */
  readonly signal?: AbortSignal | undefined
  /** Folder for a record of all exchanges, without credentials; is created. */
  readonly record?: string | undefined
}

export interface ReplayOptions extends JudgeOptions {
  /** Folder of a record, to be judged again. */
  readonly replay: string
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
  const { seconds = DEFAULT_SECONDS, signal, record } = options
  const url = parseUrl(options.url)
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    throw new MillraceError('USAGE', {
      message: `${seconds} seconds: expected a number from 1 to ${MAX_SECONDS}`,
    })
  }
  const shownUrl = new Redactor().redact(url)
  const check = new Check(shownUrl, seconds, options)
  const recorder = record === undefined ? undefined : new Recorder(record, shownUrl)
  try {
    const onExchange = (exchange: Exchange) => {
      recorder?.push(exchange)
      check.push(exchange)
    }
    await follow({ url, seconds, nowMs: checkClock(), signal, onExchange })
  } finally {
    recorder?.close()
  }
  return check.end(recorder?.dropped)
}

async function replay(options: ReplayOptions): Promise<CheckResult> {
  const { url, exchanges } = await openReplay(options.replay)
  const check = new Check(url, 0, options)
  for await (const exchange of exchanges) check.push(exchange)
  return check.end()
}

/** The judge with the figures of a check. */
class Check {
  readonly #url: string
  readonly #seconds: number
  readonly #judge: Judge
  readonly #tally = new Tally()
  readonly #onProgress: JudgeOptions['onProgress']
  #progressAtMs = 0

  constructor(url: string, seconds: number, { player, onProgress }: JudgeOptions) {
    this.#url = url
    this.#seconds = seconds
    this.#judge = new Judge(rulesFor(player))
    this.#onProgress = onProgress
  }

  push(exchange: Exchange): void {
    this.#tally.add(exchange)
    this.#judge.push(exchange)
    const { endedAtMs, durationSec } = this.#tally
    if (this.#onProgress === undefined || endedAtMs - this.#progressAtMs < PROGRESS_MS) return
    this.#progressAtMs = endedAtMs
    const { findings } = this.#judge
    const seconds = this.#seconds || Math.round(durationSec)
    this.#onProgress(this.#tally.progress(seconds, this.#edge(), findings.length))
  }

  end(unrecorded = 0): CheckResult {
    this.#judge.end()
    const { requests, bytes, failures, durationSec, startedAtMs = 0 } = this.#tally
    const { findings, summary } = this.#judge
    return {
      url: this.#url,
      startedAtMs,
      durationSec,
      findings,
      summary,
      requests,
      bytes,
      failures,
      unrecorded,
    }
  }

  #edge(): string | undefined {
    const playlist = this.#judge.summary.renditions[0]?.playlist
    return playlist && describeEdge(playlist)
  }
}

/** Milliseconds since 1970, without jumps: the wall clock at the start, and the monotonic clock from there. */
function checkClock(): () => number {
  const startMs = machineClock.wallMs() - machineClock.nowUs() / 1000
  return () => Math.round((startMs + machineClock.nowUs() / 1000) * 1000) / 1000
}

/** Scheme and fragment are checked; credentials stay. */
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
