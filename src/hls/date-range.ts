/**
 * Date range: made of a splice point, listed in all media playlists.
 *
 * @module
 */

/** EXT-X-DATERANGE (RFC 8216bis 4.4.5.1). Attributes may be added to a listed date range, but never change. */
export interface DateRange {
  /** ID, unique in the playlist. */
  readonly id: string
  /** START-DATE, milliseconds since 1970. */
  readonly startMs: number
  /** DURATION; undefined until it is known. */
  readonly durationSec?: number
  /** PLANNED-DURATION */
  readonly plannedDurationSec?: number
  // SCTE35-OUT, SCTE35-IN, SCTE35-CMD: whole splice information sections.
  readonly scte35Out?: Buffer
  readonly scte35In?: Buffer
  readonly scte35Cmd?: Buffer
}
