/**
 * Edges on other machines: their viewers, and how far they are behind, from their reports.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import type { PlayableStream } from '../../playback/playback-source.ts'
import type { EdgeState } from '../../api/records.ts'
import { MillraceError } from '../../errors.ts'
import { endOfMedia } from '../../hls/playlist/playlist-format.ts'

/** Time after which an edge without a report reads the stream no more: edges with viewers report every 5 s. */
const SILENT_US = 15 * 1_000_000

/** Maximum number of edges that are known of a stream. */
const MAX_EDGES = 1000

/** Name of the call, see `NodeRoutes`. */
export const EDGE_REPORT = 'edge-report'

/** Body of the call. What limits the body limits the report. */
const EdgeReport = Type.Object({
  /** `NODE_URL` of the edge, or its host and port. */
  edge: Type.String({ minLength: 1, maxLength: 2000 }),
  /** By stream id. */
  streams: Type.Record(
    Type.String(),
    Type.Object({
      /** See `hashOfViewer`. */
      viewers: Type.Array(Type.Integer()),
      /** Absent while the edge has no media playlist. */
      newest: Type.Optional(Type.Object({ playlist: Type.String(), endMs: Type.Number() })),
    }),
  ),
})

export type EdgeReport = Static<typeof EdgeReport>

/** How far a media playlist has come: its name, and the time at the end of its media in milliseconds since 1970. */
export type NewestMedia = NonNullable<EdgeReport['streams'][string]['newest']>

interface Seen {
  readonly lagMs: number
  readonly atUs: number
}

/** Part of `Streams`. */
interface CountedStreams {
  find(streamId: string): PlayableStream | undefined
  countViewer(stream: PlayableStream, viewer: number): void
}

/** Input: `take` each report. Query: `of`. */
export class Edges {
  readonly #streams: CountedStreams
  readonly #clock: { nowUs(): number }
  readonly #onForeign: (streamId: string, viewers: readonly number[]) => void
  /** Latest reports of the edges of each stream. */
  readonly #seen = new WeakMap<PlayableStream, Map<string, Seen>>()

  /** @param onForeign  called with viewers of a stream that is not here */
  constructor(
    streams: CountedStreams,
    clock: { nowUs(): number },
    onForeign: (streamId: string, viewers: readonly number[]) => void,
  ) {
    this.#streams = streams
    this.#clock = clock
    this.#onForeign = onForeign
  }

  /** @throws {MillraceError} `BODY_INVALID` */
  take(body: unknown): void {
    const { edge, streams } = parseReport(body)
    for (const [streamId, { viewers, newest }] of Object.entries(streams)) {
      const stream = this.#streams.find(streamId)
      if (stream === undefined) {
        this.#onForeign(streamId, viewers)
        continue
      }
      for (const viewer of viewers) this.#streams.countViewer(stream, viewer)
      const lagMs = newest && lagOf(stream, newest)
      if (lagMs !== undefined) this.#push(stream, edge, lagMs)
    }
  }

  /** Edges that read a stream, in the order of their names; undefined without any. */
  of(stream: PlayableStream): readonly EdgeState[] | undefined {
    const sinceUs = this.#clock.nowUs() - SILENT_US
    const seen = [...(this.#seen.get(stream) ?? [])].filter(([, { atUs }]) => atUs >= sinceUs)
    if (seen.length === 0) return undefined
    return seen.map(([edge, { lagMs }]) => ({ edge, lagMs })).toSorted(byName)
  }

  #push(stream: PlayableStream, edge: string, lagMs: number): void {
    const seen = this.#seen.get(stream) ?? new Map<string, Seen>()
    this.#seen.set(stream, seen)
    seen.delete(edge)
    seen.set(edge, { lagMs, atUs: this.#clock.nowUs() })
    const [oldest = edge] = seen.keys()
    if (seen.size > MAX_EDGES) seen.delete(oldest)
  }
}

function parseReport(body: unknown): EdgeReport {
  if (!Check(EdgeReport, body)) throw new MillraceError('BODY_INVALID')
  return body
}

/** Duration of the media that the playlist lists here, and did not at the edge. */
function lagOf({ files }: PlayableStream, newest: NewestMedia) {
  const file = files.get(newest.playlist)
  const endMs = file && endOfMedia(file.chunks.join(''))
  return endMs === undefined ? undefined : Math.max(0, Math.round(endMs - newest.endMs))
}

function byName(a: EdgeState, b: EdgeState): number {
  return a.edge < b.edge ? -1 : 1
}
