/**
 * The sources of a stream, what each may cost, the one on air, and when another one goes on air. Sans-IO.
 *
 * - An encoder on air that sends nothing for `failoverUs` gives way to the other one, if that has a key frame.
 * - The preferred encoder, `main` unless the operator has chosen, goes on air again at a key frame after `failbackUs` without
 *   a pause or damage.
 * - The slate goes on air when no encoder has sent anything for `slateAfterUs`, and leaves it at the key frame of an encoder.
 *
 * @module
 */
import type { EncoderSource, SourceName, SwitchReason } from '../api/records.ts'
import type { WarningFact } from '../diagnosis/warnings.ts'
import {
  addDemuxerStats,
  createDemuxerStats,
  type DemuxerStats,
} from '../mpegts/demux/demuxer-stats.ts'
import type { Track } from '../mpegts/track.ts'
import { compareTracks } from './source-tracks.ts'
import type { Source } from './source.ts'
import { WorkBudget } from './work-budget.ts'

interface SourceRules {
  readonly failoverUs: number
  readonly failbackUs: number
  readonly slateAfterUs: number
}

/** What the stream allows at the moment. */
interface Choice {
  /** Whether an encoder goes on air again for being preferred alone. */
  readonly failback: boolean
  /** Whether there is a slate. */
  readonly hasSlate: boolean
}

/** The slate has no source before it goes on air. */
export type SourceChange =
  | { readonly to: Source; readonly reason: SwitchReason }
  | { readonly to: 'slate'; readonly reason: SwitchReason }

/** Pause between two looks after which this process was late itself, and what the encoders sent meanwhile is yet unread. */
const LATE_US = 400_000
const READING_US = 100_000

/** Time before a planned change in which it is awaited: more than a frame. */
const SOON_US = 500_000

/** Time for which an encoder that has left its place beside another one is missed. */
const MISSED_US = 600_000_000

export class Sources {
  readonly #rules: SourceRules
  readonly #connected = new Map<SourceName, Source>()
  /** CPU budgets of the sources that have been connected: reconnecting does not reset them. */
  readonly #budgets = new Map<SourceName, WorkBudget>()
  /** Tracks of each source that has been connected. */
  readonly #tracks = new Map<SourceName, readonly Track[]>()
  /** Demuxer counters of the sources that have left. */
  #demuxedBefore = createDemuxerStats()
  #onAir: Source | undefined
  /** Source that was on air last; the main encoder, before any is. */
  #lastOnAir: SourceName = 'main'
  #preferred: EncoderSource = 'main'
  /** Whether the preferred encoder is wanted at its next key frame. */
  #isRequested = false
  #awaitsKeyFrame = false
  #lookedUs = -Infinity
  /** Time from which on a silent encoder has sent nothing. */
  #trustedUs = -Infinity
  /** Latest time at which an encoder was sending. */
  #sentUs = -Infinity
  /** Encoder that was ready beside the one on air, and when. */
  #standby: { readonly name: SourceName; readonly seenUs: number } | undefined

  /** @param budget  of the main encoder; default: a new one */
  constructor(rules: SourceRules, budget?: WorkBudget) {
    this.#rules = rules
    if (budget !== undefined) this.#budgets.set('main', budget)
  }

  get onAir(): Source | undefined {
    return this.#onAir
  }

  /** Whether another source than the one on air goes on air at its next key frame. */
  get awaitsKeyFrame(): boolean {
    return this.#awaitsKeyFrame
  }

  find(name: SourceName): Source | undefined {
    return this.#connected.get(name)
  }

  /** Connected sources, the one on air at the end. */
  get all(): readonly Source[] {
    const others = [...this.#connected.values()].filter((source) => source !== this.#onAir)
    return this.#onAir === undefined ? others : [...others, this.#onAir]
  }

  /** Sources with an encoder. */
  get encoders(): readonly Source[] {
    return this.all.filter(({ name }) => name !== 'slate')
  }

  /** Whether the encoder on air sends no media or, behind the slate, no encoder does. */
  get areSilent(): boolean {
    if (this.#onAir?.name !== 'slate') return this.#onAir?.publication.silent === true
    const { encoders } = this
    return encoders.length > 0 && encoders.every(({ publication }) => publication.silent)
  }

  /** Size of the media that they have received and the packager has not. */
  get queuedBytes(): number {
    let sum = 0
    for (const { publication, gop, log } of this.#connected.values())
      sum += publication.queuedBytes + gop.sizeBytes + log.sizeBytes
    return sum
  }

  /** Number of payloads dropped for their cost. */
  get payloadsDropped(): number {
    let sum = 0
    for (const { dropped } of this.#budgets.values()) sum += dropped
    return sum
  }

  /** Demuxer counters of all sources so far. */
  get demuxed(): DemuxerStats {
    let sum = this.#demuxedBefore
    for (const { publication } of this.#connected.values())
      sum = addDemuxerStats(sum, publication.demuxed)
    return sum
  }

  budgetOf(name: SourceName, nowUs: number): WorkBudget {
    let budget = this.#budgets.get(name)
    if (budget === undefined) {
      budget = new WorkBudget(nowUs)
      this.#budgets.set(name, budget)
    }
    return budget
  }

  /** Charges the source on air or, at the end of the stream, the one that was. */
  spend(workUs: number): void {
    this.#budgets.get(this.#lastOnAir)?.spend(workUs)
  }

  add(source: Source): void {
    this.#connected.set(source.name, source)
  }

  /** @returns whether it was connected */
  remove(source: Source): boolean {
    if (this.#onAir === source) this.#onAir = undefined
    if (this.#connected.get(source.name) !== source) return false
    this.#tracks.delete(source.name)
    this.#disconnect(source)
    return true
  }

  setTracks({ name }: Source, tracks: readonly Track[]): void {
    this.#tracks.set(name, tracks)
  }

  /**
   * Puts a source on air. A slate that was on air ends; its tracks remain known.
   *
   * @returns the source that was on air last, if it is another one
   */
  putOnAir(source: Source): SourceName | undefined {
    if (this.#onAir?.name === 'slate') this.#disconnect(this.#onAir)
    this.#onAir = source
    if (source.name === this.#preferred) this.#isRequested = false
    const before = this.#lastOnAir
    this.#lastOnAir = source.name
    return before === source.name ? undefined : before
  }

  /** Another encoder than before goes on air at its next key frame, and is the one to fail back to. */
  prefer(name: EncoderSource): void {
    if (name === this.#preferred) return
    this.#preferred = name
    this.request()
  }

  /** The preferred encoder goes on air at its next key frame. */
  request(): void {
    this.#isRequested = true
  }

  /** Facts that hold now. */
  factsAt(nowUs: number): WarningFact[] {
    return [
      ...(this.#budgets.get(this.#lastOnAir)?.factsAt(nowUs) ?? []),
      ...this.#placeFactsAt(nowUs),
      ...compareTracks(this.#lastOnAir, this.#tracks),
    ]
  }

  /** The change that is due; undefined for none. */
  next(nowUs: number, { failback, hasSlate }: Choice): SourceChange | undefined {
    const { failoverUs, failbackUs, slateAfterUs } = this.#rules
    if (nowUs - this.#lookedUs > LATE_US) this.#trustedUs = nowUs + READING_US
    this.#lookedUs = nowUs
    const isTrusted = nowUs >= this.#trustedUs
    const onAir = this.#onAir
    const { encoders } = this
    const sending = encoders.filter((each) => each.observe(nowUs, failoverUs))
    if (sending.length > 0) this.#sentUs = nowUs
    const standby = encoders.find((each) => each !== onAir)
    if (standby !== undefined) this.#standby = { name: standby.name, seenUs: nowUs }
    const preferred = sending.find(({ name }) => name === this.#preferred)
    if (preferred === undefined && isTrusted) this.#isRequested = false
    if (onAir !== undefined && onAir.name !== 'slate' && (!isTrusted || sending.includes(onAir))) {
      const cleanUs = failback && preferred !== undefined ? preferred.cleanUs(nowUs) : -Infinity
      const isSoon = this.#isRequested || cleanUs >= failbackUs - SOON_US
      this.#awaitsKeyFrame = preferred !== onAir && isSoon
      if (preferred === undefined || preferred === onAir || !preferred.gop.isFresh) return undefined
      if (this.#isRequested) return { to: preferred, reason: 'requested' }
      return cleanUs >= failbackUs ? { to: preferred, reason: 'recovered' } : undefined
    }
    this.#awaitsKeyFrame = sending.length > 0
    const ready = [preferred, ...sending].find((each) => each !== onAir && each?.gop.begun)
    if (ready !== undefined)
      return { to: ready, reason: onAir?.name === 'slate' ? 'recovered' : 'lost' }
    // Nothing to lose: it is on air before its key frame arrives.
    if (onAir === undefined && sending[0] !== undefined) return { to: sending[0], reason: 'lost' }
    const isSlateDue = hasSlate && isTrusted && nowUs - this.#sentUs >= slateAfterUs
    return isSlateDue && onAir?.name !== 'slate' ? { to: 'slate', reason: 'lost' } : undefined
  }

  #disconnect({ name, publication }: Source): void {
    this.#connected.delete(name)
    this.#demuxedBefore = addDemuxerStats(this.#demuxedBefore, publication.demuxed)
  }

  /** Facts about encoders that are not where they should be. */
  #placeFactsAt(nowUs: number): WarningFact[] {
    const onAir = this.#onAir?.name
    if (onAir === undefined || onAir === 'slate') return []
    const wanted = this.#preferred
    if (onAir !== wanted)
      return [{ code: 'FAILED_OVER', wanted, onAir, isConnected: this.#connected.has(wanted) }]
    const { name: source, seenUs } = this.#standby ?? { name: onAir, seenUs: -Infinity }
    const isGone = !this.#connected.has(source) && nowUs - seenUs < MISSED_US
    return isGone ? [{ code: 'STANDBY_GONE', source }] : []
  }
}
