/**
 * Follows one media playlist as a player does: reloads, parts and segments as they appear, and probes between.
 *
 * @module
 */
import {
  comparePositions,
  mergeDelta,
  nextMedia,
  parseMediaPlaylist,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import { withoutDirectives } from '../playlist/directives.ts'
import { findTags } from '../playlist/tag-reader.ts'
import type { CheckClock } from './check-clock.ts'
import type { Loaded, Request } from './http-client.ts'
import { followsParts, MediaChoice } from './media-choice.ts'
import { ProbePlan, RemovalPlan } from './probes.ts'
import { nextReload, plainReload, type Reloaded } from './reload-plan.ts'

/** Every how many versions the hinted part is asked for before it is listed. */
const HINT_EVERY = 7

/** Time for which parts wait for the response to a hint. */
const MAX_HINT_WAIT_MS = 1000

/** Media requests that may wait; the newest are dropped when loading is slower than the stream. */
const MAX_WAITING = 30

/** Shared by the followers of a check. */
export interface FollowContext {
  readonly seconds: number
  readonly clock: CheckClock
  readonly signal: AbortSignal
  /** Undefined after the end of the check. */
  readonly load: (request: Request) => Promise<Loaded | undefined>
  /** Tells the rules about an exchange. */
  readonly emit: (loaded: Loaded) => void
}

/** Inputs: `run` once. */
export class PlaylistFollower {
  readonly #url: string
  readonly #context: FollowContext
  readonly #choice: MediaChoice
  readonly #media = new MediaQueue()
  readonly #probes: ProbePlan | undefined
  readonly #removals: RemovalPlan | undefined
  /** Requests besides reloads and media that are under way. */
  readonly #others = new Set<Promise<void>>()
  #playlist: ParsedPlaylist | undefined
  #count = 0
  #failures = 0
  #hint: Promise<Loaded | undefined> | undefined

  /** @param probes  whether probes are sent for this playlist */
  constructor(url: string, context: FollowContext, probes: boolean) {
    this.#url = url
    this.#context = context
    this.#choice = new MediaChoice(url)
    this.#probes = probes ? new ProbePlan(url, context.seconds) : undefined
    this.#removals = probes ? new RemovalPlan(url, context.seconds) : undefined
  }

  /** Resolves at the end of the playlist or of the check. */
  async run(first?: Loaded): Promise<void> {
    const { load, emit, signal } = this.#context
    let role: Reloaded['role'] = 'playlist'
    let loaded = first ?? (await load(plainReload(this.#url)))
    while (loaded !== undefined) {
      emit(loaded)
      const { sentAtMs } = loaded.exchange
      const advanced = this.#read(loaded)
      this.#emitHint()
      this.#loadMedia()
      if (this.#playlist?.ended === true && this.#failures === 0) break
      const { failures, count } = { failures: this.#failures, count: ++this.#count }
      const playlist = this.#playlist
      const reload = nextReload(this.#url, { role, playlist, advanced, failures, count })
      const sinceSentMs = this.#context.clock.nowMs() - sentAtMs
      await this.#wait(Math.max(reload.afterEndMs, reload.afterSentMs - sinceSentMs))
      if (signal.aborted) break
      role = reload.request.role
      if (role !== 'playlist' && this.#count % HINT_EVERY === 0) this.#askForHint()
      loaded = await load(reload.request)
    }
    await this.#finish()
  }

  /** @returns whether the response lists new media */
  #read({ status, body, url, exchange }: Loaded): boolean {
    const before = this.#playlist
    if (status !== 200) {
      this.#failures++
      return false
    }
    const read = parseMediaPlaylist(body.toString(), withoutDirectives(url))
    const playlist = before === undefined ? read : mergeDelta(before, read)
    if (playlist === undefined || playlist.skipped > 0 || !playlist.text.startsWith('#EXTM3U')) {
      this.#failures++
      return false
    }
    this.#failures = 0
    this.#playlist = playlist
    if (before === undefined) return true
    const nowMs = this.#context.clock.nowMs()
    const probe =
      this.#removals?.next(before, playlist, { sentAtMs: exchange.sentAtMs, nowMs }) ??
      (playlist.ended ? undefined : this.#probes?.next(playlist, nowMs))
    if (probe !== undefined) this.#start(this.#loadAndEmit(probe))
    return isNewer(before, playlist)
  }

  #loadMedia(): void {
    if (this.#playlist === undefined) return
    const requests = this.#choice.choose(this.#playlist)
    this.#media.push(...requests.map((request) => () => this.#loadAndEmit(request)))
  }

  /** Asks for the hinted part; rules see the response after the playlist that lists the part. */
  #askForHint(): void {
    const playlist = this.#playlist
    if (playlist === undefined || !followsParts(playlist)) return
    const hint = playlist.hints[0]
    const hasRange = findTags(playlist, 'EXT-X-PRELOAD-HINT').some(({ attributes }) =>
      attributes.has('BYTERANGE-START'),
    )
    if (hint === undefined || hasRange || !URL.canParse(hint.url)) return
    this.#choice.addHint(hint.url)
    const timeoutMs = 3000 * playlist.targetSec + 5000
    this.#hint = this.#context.load({
      role: 'hint',
      url: hint.url,
      playlistUrl: this.#url,
      ...(timeoutMs <= 60_000 && { timeoutMs: Math.max(10_000, timeoutMs) }),
    })
  }

  /** Emits the response to the hint before the parts that follow, if it comes soon. */
  #emitHint(): void {
    const hint = this.#hint
    if (hint === undefined) return
    this.#hint = undefined
    const emitted = this.#emitLater(hint)
    this.#start(emitted)
    this.#media.push(async () => Promise.race([emitted, this.#wait(MAX_HINT_WAIT_MS)]))
  }

  async #emitLater(loading: Promise<Loaded | undefined>): Promise<void> {
    const loaded = await loading
    if (loaded !== undefined) this.#context.emit(loaded)
  }

  /** Loads the media that is left, and sends each probe once if the playlist had ended from the start. */
  async #finish(): Promise<void> {
    await this.#media.drain()
    const playlist = this.#playlist
    if (playlist !== undefined && this.#count === 0 && this.#probes !== undefined) {
      for (const probe of this.#probes.once(playlist)) await this.#loadAndEmit(probe)
    }
    await Promise.all(this.#others)
  }

  async #loadAndEmit(request: Request): Promise<void> {
    if (!/^https?:/.test(request.url)) return
    await this.#emitLater(this.#context.load(request))
  }

  #start(task: Promise<void>): void {
    this.#others.add(task)
    void task.finally(() => this.#others.delete(task))
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await this.#context.clock.sleep(ms, this.#context.signal)
  }
}

/** Whether a version lists a segment or part after the live edge of the version before. */
function isNewer(before: ParsedPlaylist, after: ParsedPlaylist): boolean {
  return comparePositions(nextMedia(after), nextMedia(before)) > 0
}

/** Loads the media of one playlist one after the other, so that neighbors are judged in order. */
class MediaQueue {
  #waiting: (() => Promise<unknown>)[] = []
  #running: Promise<void> | undefined

  push(...tasks: readonly (() => Promise<unknown>)[]): void {
    this.#waiting = [...this.#waiting, ...tasks].slice(0, MAX_WAITING)
    this.#running ??= this.#run()
  }

  /** Resolves when all that was pushed is loaded. */
  async drain(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await next()
    }
    this.#running = undefined
  }
}
