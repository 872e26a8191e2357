/**
 * Playlists, totals and manifest of a stream, from the outputs of its packager.
 *
 * @module
 */
import type { ManifestChange, StreamManifest } from '../hls/manifest.ts'
import type { PackagerOutput } from '../hls/packager.ts'
import { LivePresentation } from '../hls/playlist/live-presentation.ts'
import type { Continuation } from './continuation.ts'
import type { LiveStreamOptions } from './live-stream-options.ts'
import { ManifestFeed } from './manifest-feed.ts'
import { Totals } from './totals.ts'

export class StreamPlaylists {
  readonly presentation: LivePresentation
  readonly totals: Totals
  readonly #clock: LiveStreamOptions['clock']
  readonly #feed: ManifestFeed

  /**
   * @param continuation  stream to continue; undefined for a new one
   * @param onManifest  called when the manifest changes, once until the next `takeChange`
   */
  constructor(
    options: LiveStreamOptions,
    continuation: Continuation | undefined,
    onManifest: () => void,
  ) {
    const { clock, continued, sequenceStart } = options
    this.#clock = clock
    this.totals = new Totals(continuation?.packager.sequenceStart ?? sequenceStart)
    const onRow = (mediaSequence: number) => this.#feed.mark(mediaSequence)
    this.presentation = new LivePresentation({ ...options, onRow })
    const { presentation, totals } = this
    this.#feed = new ManifestFeed({ media: options, presentation, totals }, onManifest)
    if (continuation === undefined) return
    const mediaOf = continued?.mediaOf ?? (() => undefined)
    presentation.restore(continuation.manifest, continuation.rows, { mediaOf, nowMs: this.#nowMs })
  }

  get manifest(): StreamManifest {
    return this.#feed.manifest
  }

  /** @returns changes of the manifest since the previous call; undefined if nobody listens */
  takeChange({ isHeard }: { readonly isHeard: boolean }): ManifestChange | undefined {
    if (isHeard) return this.#feed.take()
    this.#feed.clear()
    return undefined
  }

  /** @returns false for a date range for which there is no room */
  take(output: Exclude<PackagerOutput, { readonly type: 'fact' }>): boolean {
    if (output.type === 'part') this.presentation.appendPart(output.part)
    else if (output.type === 'segment') {
      this.presentation.append(output.segment, this.#nowMs)
      this.totals.addSegment(output.segment)
    } else if (output.type === 'date-range') {
      // Not for one without room: the manifest would be sent again for each section.
      const isListed = this.presentation.addDateRange(output.dateRange)
      if (isListed) this.#feed.mark()
      return isListed
    } else {
      this.#feed.mark()
      if (output.type === 'renditions') this.presentation.setRenditions(output.renditions)
      else if (output.type === 'target') {
        this.presentation.setTarget(output.targetSec, output.partTargetSec)
      } else {
        this.totals.startSegment(output.start)
        this.presentation.start(output.start)
      }
    }
    return true
  }

  get #nowMs(): number {
    return this.#clock.nowUs() / 1000
  }
}
