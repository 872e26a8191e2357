/**
 * Form of a rule: its text for people, the subject it looks at, and the check itself.
 *
 * @module
 */
import type { SubjectName, Subjects } from './subjects.ts'

/** Force of a requirement (RFC 2119). */
export type Level = 'MUST' | 'SHOULD'

/** Players that a verdict is given for: AVPlayer and Safari, hls.js, Shaka, video.js, Media3 on Android. */
export const PLAYERS = ['apple', 'hlsjs', 'shaka', 'videojs', 'android'] as const
/** Name of a player, see `PLAYERS`. */
export type Player = (typeof PLAYERS)[number]

/** How bad a broken rule is for a player, worst first. */
export type Severity = 'stops' | 'stalls' | 'degrades'

/** What a player does where a rule is broken. */
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

/** A rule as it is printed. */
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

/** A rule: what it says, and how it is checked. */
export type Rule = { [S in SubjectName]: RuleOn<S> }[SubjectName]
