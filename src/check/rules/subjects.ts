/**
 * Subjects of rules: what the judge makes of the exchanges, and hands to each rule on that kind of subject.
 *
 * @module
 */
import type { Exchange, Reply } from '../exchange.ts'
import type { InspectedTrack, MediaFacts } from '../media/media-facts.ts'
import type { ParsedPart, ParsedSegment, ParsedPlaylist } from '../playlist/media-playlist.ts'
import type {
  ParsedRendition,
  ParsedVariant,
  ParsedMultivariant,
} from '../playlist/multivariant-playlist.ts'

/** Subjects of rules; a rule is checked once for each subject of its kind. */
export interface Subjects {
  /** Each version of a playlist of either kind, as text. */
  readonly text: { readonly playlist: ParsedPlaylist | ParsedMultivariant }
  /** Each version of the multivariant playlist. */
  readonly multivariant: { readonly playlist: ParsedMultivariant }
  /** Each version of a media playlist whose text differs from the version before; delta updates merged. */
  readonly playlist: { readonly playlist: ParsedPlaylist }
  /** Two versions of a media playlist in succession. */
  readonly update: { readonly before: ParsedPlaylist; readonly after: ParsedPlaylist }
  /** Each response with a media playlist, changed or not, unless it is an older version. */
  readonly reload: {
    readonly exchange: Exchange
    readonly reply: Reply
    readonly playlist: ParsedPlaylist
    /** Undefined for the first version. */
    readonly before: ParsedPlaylist | undefined
    /** Time for which the server had no newer segment, or part, than `before`. */
    readonly withoutSegmentMs: StaleTime
    readonly withoutPartMs: StaleTime
  }
  /** A version that arrived although a newer one had arrived before its request. */
  readonly older: { readonly newest: ParsedPlaylist; readonly older: ParsedPlaylist }
  /** Newest version of each media playlist, when all of them were loaded within one target duration. */
  readonly renditions: {
    readonly multivariant: ParsedMultivariant
    readonly playlists: readonly ParsedPlaylist[]
    /** The same, with times. */
    readonly versions: readonly Version[]
  }
  /** A delta update merged into the version before, and the full playlist of the same version. */
  readonly delta: { readonly merged: ParsedPlaylist; readonly full: ParsedPlaylist }
  /** A segment or part with its listing, inspected. */
  readonly media: InspectedMedia
  /** Two segments, or two parts, of one playlist that follow each other. */
  readonly sequence: { readonly before: InspectedMedia; readonly after: InspectedMedia }
  /** Starts of the same media sequence number in two playlists: the segment or its first part, inspected. */
  readonly starts: { readonly one: InspectedMedia; readonly other: InspectedMedia }
  /** A segment and all of its parts, inspected. */
  readonly parent: { readonly segment: InspectedMedia; readonly parts: readonly InspectedMedia[] }
  /** Each response. `playlist`: newest version of the media playlist that it belongs to. */
  readonly reply: {
    readonly exchange: Exchange
    readonly reply: Reply
    readonly playlist: ParsedPlaylist | undefined
    /** Whether the request is for media that is listed, or that left the playlist so recently that it must stay available. */
    readonly isDue: boolean
  }
  /** Each request without a whole response. */
  readonly failure: { readonly exchange: Exchange; readonly playlist: ParsedPlaylist | undefined }
  /** Figures over the whole check, once at its end. */
  readonly end: Summary
}

export type SubjectName = keyof Subjects

/** A subject with its kind. */
export type Occurrence = { [S in SubjectName]: readonly [S, Subjects[S]] }[SubjectName]

/** A version of a media playlist, with the times of its request and of the end of its response. */
export interface Version {
  readonly playlist: ParsedPlaylist
  readonly sentAtMs: number
  readonly atMs: number
  /** The version before, which does not name the one before itself. */
  readonly before?: Omit<Version, 'before'>
}

/** Time without anything new, in milliseconds: proved by the previous response, and by this one. */
export type StaleTime = readonly [before: number, now: number]

/** A segment or part with its listing, the exchange that loaded it, and the facts about its bytes. */
export interface InspectedMedia {
  readonly playlist: ParsedPlaylist
  readonly segment: ParsedSegment
  /** Undefined if the segment itself was loaded. */
  readonly part: ParsedPart | undefined
  readonly exchange: Exchange
  readonly reply: Reply
  readonly facts: MediaFacts
}

/** Figures over a whole check. */
export interface Summary {
  readonly multivariant: ParsedMultivariant | undefined
  readonly renditions: readonly RenditionFigures[]
  readonly durationSec: number
}

/** One media playlist with the figures of its media as loaded. */
export interface RenditionFigures {
  /** Newest version. */
  readonly playlist: ParsedPlaylist
  /** Variants whose own playlist it is; empty for alternative renditions. */
  readonly variants: readonly ParsedVariant[]
  /** Alternative renditions whose playlist it is. */
  readonly alternatives: readonly ParsedRendition[]
  /** Tracks of the newest segment or part, as inspected. */
  readonly tracks: readonly InspectedTrack[]
  /** Most bits per second of any contiguous segments with a sum of 0.5 to 1.5 target durations (4.1); 0 without. */
  readonly peakBps: number
  /** Bits per second of all segments loaded. */
  readonly averageBps: number
  readonly mediaSec: number
  /** Newest segment of each timeline with its date, by discontinuity sequence number. */
  readonly marks: ReadonlyMap<number, DatedMedia>
}

/** Segment, or its first part, with its EXT-X-PROGRAM-DATE-TIME, given or advanced by EXTINF. */
export interface DatedMedia {
  readonly media: InspectedMedia
  /** Milliseconds since 1970. */
  readonly dateTimeMs: number
}
