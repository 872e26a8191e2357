/** The parts that are used of m3u8-parser, which comes without types. */
declare module 'm3u8-parser' {
  export interface TheirSegment {
    readonly uri: string
    readonly duration: number
    readonly timeline: number
    readonly discontinuity?: boolean
    readonly programDateTime?: number
    readonly map?: { readonly uri: string }
    readonly parts?: readonly { readonly duration: number }[]
  }

  export interface ParsedDateRange {
    readonly id: string
    readonly startDate: Date
    readonly duration?: number
    readonly plannedDuration?: number
    readonly scte35Out?: string
    readonly scte35In?: string
    readonly scte35Cmd?: string
  }

  export class Parser {
    manifest: {
      readonly segments?: readonly TheirSegment[]
      /** Segment that is not complete. */
      readonly preloadSegment?: Partial<TheirSegment>
      readonly dateRanges?: readonly ParsedDateRange[]
      readonly playlists?: readonly {
        readonly uri: string
        readonly attributes: Readonly<Record<string, unknown>>
      }[]
      readonly targetDuration?: number
      readonly mediaSequence?: number
      readonly discontinuitySequence?: number
      readonly independentSegments?: boolean
      readonly endList?: boolean
    }
    push(text: string): void
    end(): void
    on(
      event: 'warn' | 'info' | 'error',
      listener: (event: { readonly message: string }) => void,
    ): void
  }
}
