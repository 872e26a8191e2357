/**
 * Applies the rules to the exchanges of a check, in order, and gathers what is broken. Live or from a record: no clock,
 * no network.
 *
 * ```
 * Exchange ─► playlists, media ─► subjects ─► rules ─► findings
 * ```
 *
 * @module
 */
import { isReload, type Exchange, type Reply } from './exchange.ts'
import type { InspectedMedia } from './media/inspected-media.ts'
import { isMultivariant, parseMultivariantPlaylist } from './playlist/multivariant-playlist.ts'
import type { MultivariantPlaylist } from './playlist/multivariant-playlist.ts'
import { FollowedPlaylist } from './followed-playlist.ts'
import { withoutDirectives } from './playlist/directives.ts'
import type { Evidence, Rule, SubjectName, Subjects } from './rules/rule.ts'
import type { Summary } from './summary.ts'

/** Evidence kept of one rule. */
const MAX_EVIDENCE = 3

/** Places of one rule that are known again, so that a part listed in many versions counts once. */
const MAX_PLACES = 1000

/** A broken rule. */
export interface Finding {
  readonly rule: Rule
  /** Number of places where it is broken. */
  readonly count: number
  /** Time of the first, milliseconds since 1970. */
  readonly firstAtMs: number
  /** The first few. */
  readonly evidence: readonly Evidence[]
}

/** Inputs: `push` each exchange in the order of their ends, `end` once. */
export class Judge {
  readonly #rules: readonly Rule[]
  readonly #bySubject: ReadonlyMap<SubjectName, readonly Rule[]>
  readonly #findings = new Map<Rule, Finding>()
  readonly #places = new Map<Rule, Set<string>>()
  /** By URL without directives. */
  readonly #playlists = new Map<string, FollowedPlaylist>()
  #multivariant: MultivariantPlaylist | undefined
  #startMs: number | undefined
  #nowMs = 0

  constructor(rules: readonly Rule[]) {
    this.#rules = rules
    const names = new Set(rules.map(({ on }) => on))
    this.#bySubject = new Map(
      [...names].map((name) => [name, rules.filter(({ on }) => on === name)]),
    )
  }

  /** Broken rules in the order of the table. */
  get findings(): readonly Finding[] {
    return this.#rules.flatMap((rule) => this.#findings.get(rule) ?? [])
  }

  push(exchange: Exchange): void {
    const { reply } = exchange
    this.#startMs ??= exchange.sentAtMs
    this.#nowMs = reply?.endedAtMs ?? exchange.sentAtMs
    const playlist = this.#playlistOf(exchange)
    if (reply === undefined) {
      this.#check('failure', { exchange, playlist: playlist?.newest })
      return
    }
    if (reply.status === 200 || reply.status === 206) this.#read(exchange, reply, playlist)
    const isDue = playlist?.isDue(exchange, reply) ?? false
    this.#check('reply', { exchange, reply, playlist: playlist?.newest, isDue })
  }

  end(): void {
    this.#check('end', this.summary)
  }

  get summary(): Summary {
    return {
      multivariant: this.#multivariant,
      renditions: [...this.#playlists.values()].flatMap(
        (playlist) => playlist.summarize(this.#multivariant) ?? [],
      ),
      durationSec: (this.#nowMs - (this.#startMs ?? this.#nowMs)) / 1000,
    }
  }

  #read(exchange: Exchange, reply: Reply, playlist: FollowedPlaylist | undefined): void {
    if (isReload(exchange.role)) return this.#readPlaylist(exchange, reply, playlist)
    switch (exchange.role) {
      case 'multivariant':
        return this.#readMultivariant(reply)
      case 'init':
        playlist?.addInit(exchange, reply)
        return
      case 'segment':
      case 'part':
      case 'hint':
        for (const [subject, value] of playlist?.addMedia(exchange, reply) ?? []) {
          this.#check(subject, value)
          if (subject === 'media') this.#compareStarts(playlist!, value)
        }
        return
      default:
    }
  }

  /** Compares the start of a segment with those of the same number in all other playlists. */
  #compareStarts(playlist: FollowedPlaylist, media: InspectedMedia): void {
    if (!playlist.addStart(media)) return
    for (const each of this.#playlists.values()) {
      const one = each === playlist ? undefined : each.startOf(media.segment.sequence)
      if (one !== undefined) this.#check('starts', { one, other: media })
    }
  }

  #readMultivariant({ body, url }: Reply): void {
    const text = body.toString()
    if (!isMultivariant(text) || text === this.#multivariant?.text) return
    this.#multivariant = parseMultivariantPlaylist(text, url)
    this.#check('text', { playlist: this.#multivariant })
    this.#check('multivariant', { playlist: this.#multivariant })
  }

  #readPlaylist(exchange: Exchange, reply: Reply, playlist: FollowedPlaylist | undefined): void {
    let isNew = false
    for (const [subject, value] of playlist?.addVersion(exchange, reply) ?? []) {
      this.#check(subject, value)
      isNew ||= subject === 'playlist'
    }
    if (!isNew || this.#multivariant === undefined) return
    const versions = [...this.#playlists.values()].flatMap(({ version }) => version ?? [])
    const oldestAtMs = Math.min(...versions.map(({ atMs }) => atMs))
    const targetSec = versions[0]?.playlist.targetSec ?? 0
    if (versions.length < this.#playlists.size) return
    if (this.#nowMs - oldestAtMs > targetSec * 1000) return
    const playlists = versions.map((version) => version.playlist)
    this.#check('renditions', { multivariant: this.#multivariant, playlists, versions })
  }

  /** State of the media playlist that the exchange belongs to. */
  #playlistOf({ role, url, playlistUrl }: Exchange): FollowedPlaylist | undefined {
    if (role === 'multivariant') return undefined
    const key = withoutDirectives(playlistUrl ?? url)
    const known = this.#playlists.get(key)
    if (known !== undefined) return known
    if (!isReload(role)) return undefined
    const created = new FollowedPlaylist(key)
    this.#playlists.set(key, created)
    return created
  }

  #check<S extends SubjectName>(name: S, subject: Subjects[S]): void {
    for (const rule of this.#bySubject.get(name) ?? []) {
      const check = rule.check as (subject: Subjects[S]) => readonly Evidence[]
      const evidence = check(subject).filter((each) => this.#isNew(rule, each))
      if (evidence.length === 0) continue
      const known = this.#findings.get(rule)
      this.#findings.set(rule, {
        rule,
        count: (known?.count ?? 0) + evidence.length,
        firstAtMs: known?.firstAtMs ?? this.#nowMs,
        evidence: [...(known?.evidence ?? []), ...evidence].slice(0, MAX_EVIDENCE),
      })
    }
  }

  /** Lines move from version to version: the text tells a place. */
  #isNew(rule: Rule, [claim, seen]: Evidence): boolean {
    const places = this.#places.get(rule) ?? new Set()
    this.#places.set(rule, places)
    const place = [claim.url, claim.text, seen.url, seen.text].join('\n')
    if (places.has(place)) return false
    const [oldest] = places
    if (places.size >= MAX_PLACES) places.delete(oldest!)
    places.add(place)
    return true
  }
}
