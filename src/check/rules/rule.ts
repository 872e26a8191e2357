/**
 * Form of a rule: its text for people, the subject it looks at, and the check itself.
 *
 * @module
 */
import type { Exchange, Reply } from '../exchange.ts'
import type { InspectedMedia } from '../media/inspected-media.ts'
import type { MediaPlaylist } from '../playlist/media-playlist.ts'
import type { MultivariantPlaylist } from '../playlist/multivariant-playlist.ts'
import type { Summary } from '../summary.ts'

export type Level = 'MUST' | 'SHOULD'

/** Players that a verdict is given for: AVPlayer and Safari, hls.js, Shaka, video.js, Media3 on Android. */
export const PLAYERS = ['apple', 'hlsjs', 'shaka', 'videojs', 'android'] as const
export type Player = (typeof PLAYERS)[number]

/** How bad a broken rule is for a player, worst first. */
export type Severity = 'stops' | 'stalls' | 'degrades'

export interface Effect {
  readonly severity: Severity
  /** Sentence in present tense: `Refuses the playlist with error -12642.` */
  readonly text: string
}

/** One side of a contradiction, and where it was found. */
export interface Fact {
  /** `EXTINF is 2.00000 s`, `the media lasts 2.41 s`. */
  readonly text: string
  readonly url?: string
  /** 1-based line of the playlist. */
  readonly line?: number
}

/** Two facts of which at most one can be right: a requirement or claim, and what was seen. */
export type Evidence = readonly [claim: Fact, seen: Fact]

/** A version of a media playlist, with the times of the request and of the end of its reply. */
export interface Version {
  readonly playlist: MediaPlaylist
  readonly sentAtMs: number
  readonly atMs: number
  /** Version before, without its own. */
  readonly before?: Omit<Version, 'before'>
}

/** Time without anything new, in milliseconds: proved until the previous reply, and until this one. */
export type Quiet = readonly [before: number, now: number]

/** Subjects of rules; a rule is checked once for each subject of its kind. */
export interface Subjects {
  /** Each version of a playlist of either kind, as text. */
  readonly text: { readonly playlist: MediaPlaylist | MultivariantPlaylist }
  /** Each version of the multivariant playlist. */
  readonly multivariant: { readonly playlist: MultivariantPlaylist }
  /** Each version of a media playlist whose text differs from the version before; delta updates merged. */
  readonly playlist: { readonly playlist: MediaPlaylist }
  /** Two versions of a media playlist in succession. `atMs`: arrival of the reply. */
  readonly update: {
    readonly before: MediaPlaylist
    readonly after: MediaPlaylist
    readonly beforeAtMs: number
    readonly afterAtMs: number
  }
  /** Each reply with a media playlist that is no older version, changed or not. */
  readonly reload: {
    readonly exchange: Exchange
    readonly reply: Reply
    readonly playlist: MediaPlaylist
    /** Undefined for the first version. */
    readonly before: MediaPlaylist | undefined
    /** Time for which the server had no newer segment, or part, than `before`. */
    readonly withoutSegmentMs: Quiet
    readonly withoutPartMs: Quiet
  }
  /** A version that arrived although a newer one had arrived before its request. */
  readonly older: { readonly newest: MediaPlaylist; readonly older: MediaPlaylist }
  /** Newest version of each media playlist, when all of them were loaded within one target duration. */
  readonly renditions: {
    readonly multivariant: MultivariantPlaylist
    readonly playlists: readonly MediaPlaylist[]
    /** The same, with times. */
    readonly versions: readonly Version[]
  }
  /** A delta update merged into the version before, and the full playlist of the same version. */
  readonly delta: { readonly merged: MediaPlaylist; readonly full: MediaPlaylist }
  /** A segment or part with its listing, inspected. */
  readonly media: InspectedMedia
  /** Two segments, or two parts, of one playlist that follow each other. */
  readonly sequence: { readonly before: InspectedMedia; readonly after: InspectedMedia }
  /** Starts of the same media sequence number in two playlists: the segment or its first part, inspected. */
  readonly starts: { readonly one: InspectedMedia; readonly other: InspectedMedia }
  /** A segment and all of its parts, inspected. */
  readonly parent: { readonly segment: InspectedMedia; readonly parts: readonly InspectedMedia[] }
  /** Each reply. `playlist`: newest version of the media playlist that it belongs to. */
  readonly reply: {
    readonly exchange: Exchange
    readonly reply: Reply
    readonly playlist: MediaPlaylist | undefined
    /** Whether the request asks for media that is listed, or was until so short a time ago that it has to be there. */
    readonly isDue: boolean
  }
  /** Each request without a whole reply. */
  readonly failure: { readonly exchange: Exchange; readonly playlist: MediaPlaylist | undefined }
  /** Figures over the whole check, once at its end. */
  readonly end: Summary
}

export type SubjectName = keyof Subjects

export interface RuleText {
  /** Stable name in capitals: `PART_OVER_TARGET`. */
  readonly id: string
  /** `RFC 8216bis 4.4.4.9`, `Apple HLS authoring 8.12`, `Fetch, CORS`. */
  readonly clause: string
  readonly level: Level
  /** Requirement in one sentence. */
  readonly requirement: string
  /** Players that suffer; a player that is not named ignores the fault. */
  readonly effects: Partial<Readonly<Record<Player, Effect>>>
  /** What to change at the server or encoder, in one sentence. */
  readonly remedy: string
}

export interface RuleOn<S extends SubjectName> extends RuleText {
  readonly on: S
  /** @returns a contradiction for each place where the rule is broken; empty where it is kept */
  readonly check: (subject: Subjects[S]) => readonly Evidence[]
}

export type Rule = { [S in SubjectName]: RuleOn<S> }[SubjectName]
