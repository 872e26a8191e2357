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
import { isOk, isReload, type Exchange, type Reply } from '../exchange.ts'
import { withoutDirectives } from '../playlist/directives.ts'
import {
  isMultivariant,
  parseMultivariantPlaylist,
  type ParsedMultivariant,
} from '../playlist/multivariant-playlist.ts'
import type { Evidence, Rule } from '../rules/rule.ts'
import type { InspectedMedia, SubjectName, Subjects, Summary } from '../rules/subjects.ts'
import { LoadedMedia } from './loaded-media.ts'
import { PlaylistHistory } from './playlist-history.ts'

/** Evidence kept of one rule. */
const MAX_EVIDENCE = 3

/** Places of one rule that are remembered, so that a part that many versions list counts once. */
const MAX_PLACES = 1000

/** One media playlist: its versions, and the media that was loaded. */
interface CheckedPlaylist {
  readonly versions: PlaylistHistory
  readonly media: LoadedMedia
}

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
  readonly #playlists = new Map<string, CheckedPlaylist>()
  #multivariant: ParsedMultivariant | undefined
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
      this.#check('failure', { exchange, playlist: playlist?.versions.newest })
      return
    }
    if (isOk(reply)) this.#read(exchange, reply, playlist)
    const isDue = playlist?.versions.isDue(exchange, reply) ?? false
    this.#check('reply', { exchange, reply, playlist: playlist?.versions.newest, isDue })
  }

  end(): void {
    this.#check('end', this.summary)
  }

  get summary(): Summary {
    const { variants = [], renditions = [] } = this.#multivariant ?? {}
    return {
      multivariant: this.#multivariant,
      renditions: [...this.#playlists].flatMap(([key, { versions, media }]) =>
        versions.newest === undefined
          ? []
          : {
              playlist: versions.newest,
              variants: variants.filter(({ url }) => url === key),
              alternatives: renditions.filter(({ url }) => url === key),
              ...media.summary,
            },
      ),
      durationSec: (this.#nowMs - (this.#startMs ?? this.#nowMs)) / 1000,
    }
  }

  #read(exchange: Exchange, reply: Reply, playlist: CheckedPlaylist | undefined): void {
    if (isReload(exchange.role)) return this.#readPlaylist(exchange, reply, playlist)
    switch (exchange.role) {
      case 'multivariant':
        return this.#readMultivariant(reply)
      case 'init':
        return playlist?.media.addInit(exchange, reply)
      case 'segment':
      case 'part':
      case 'hint':
        return this.#readMedia(exchange, reply, playlist)
      default:
    }
  }

  #readMedia(exchange: Exchange, reply: Reply, playlist: CheckedPlaylist | undefined): void {
    const newest = playlist?.versions.newest
    if (newest === undefined) return
    for (const [subject, value] of playlist!.media.add(newest, exchange, reply)) {
      this.#check(subject, value)
      if (subject === 'media') this.#compareStarts(playlist!, value)
    }
  }

  /** Compares the start of a segment with those of the same number in all other playlists. */
  #compareStarts(playlist: CheckedPlaylist, media: InspectedMedia): void {
    if (!playlist.media.addStart(media)) return
    for (const each of this.#playlists.values()) {
      const one = each === playlist ? undefined : each.media.startOf(media.segment.sequence)
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

  #readPlaylist(exchange: Exchange, reply: Reply, playlist: CheckedPlaylist | undefined): void {
    let isNew = false
    for (const [subject, value] of playlist?.versions.add(exchange, reply) ?? []) {
      this.#check(subject, value)
      isNew ||= subject === 'playlist'
    }
    if (!isNew || this.#multivariant === undefined) return
    const versions = [...this.#playlists.values()].flatMap(
      ({ versions: { version } }) => version ?? [],
    )
    const oldestAtMs = Math.min(...versions.map(({ atMs }) => atMs))
    const targetSec = versions[0]?.playlist.targetSec ?? 0
    if (versions.length < this.#playlists.size) return
    if (this.#nowMs - oldestAtMs > targetSec * 1000) return
    const playlists = versions.map((version) => version.playlist)
    this.#check('renditions', { multivariant: this.#multivariant, playlists, versions })
  }

  /** State of the media playlist that the exchange belongs to. */
  #playlistOf({ role, url, playlistUrl }: Exchange): CheckedPlaylist | undefined {
    if (role === 'multivariant') return undefined
    const key = withoutDirectives(playlistUrl ?? url)
    const known = this.#playlists.get(key)
    if (known !== undefined) return known
    if (!isReload(role)) return undefined
    const created = { versions: new PlaylistHistory(key), media: new LoadedMedia() }
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

  /** Whether the place is new. Lines move from version to version, so a place is known by its text. */
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
