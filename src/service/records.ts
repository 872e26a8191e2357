/**
 * Records of streams, with the load of the process that serves them.
 *
 * @module
 */
import { MAX_PAGE_STREAMS } from '../contract/schema.ts'
import type { ServiceReport } from '../contract/service-report.ts'
import type { ListRequest, PlaybackUrls, StreamPage, StreamRecord } from '../contract/streams.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { StreamFilter } from '../stream/registry.ts'

/** Describes who watches a stream. */
export type AudienceOf = (stream: LiveStream) => Pick<StreamRecord, 'viewers' | 'edges'>

type OwnershipOf = (streamId: string) => Pick<StreamRecord, 'node' | 'fence' | 'pendingWrites'>

export interface RecordsOptions {
  readonly urlsOf: (stream: LiveStream) => PlaybackUrls
  /** See `StreamsOptions`. */
  readonly hasPlaybackSecret: boolean
  readonly audienceOf: AudienceOf
  readonly ownTermsOf: (stream: LiveStream) => Pick<StreamRecord, 'options' | 'bannedUntil'>
  /** Describes this node of the cluster as the owner of a stream; undefined without a cluster. */
  readonly ownershipOf?: OwnershipOf | undefined
  /** @returns undefined until the service listens */
  readonly readLoad: () => ServiceReport | undefined
}

export class Records {
  readonly #options: RecordsOptions

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  of(stream: LiveStream): StreamRecord {
    return { ...this.#describe(stream), ...this.#service }
  }

  /** Page of records that others have made. */
  pageOf(streams: readonly StreamRecord[], next: string | undefined): StreamPage {
    return {
      streams: streams.map((record) => {
        const { service: _, ...stream } = record
        return stream
      }),
      ...(next !== undefined && { next }),
      ...this.#service,
    }
  }

  /** @param find  see `StreamRegistry.list` */
  page(
    { limit = MAX_PAGE_STREAMS, ...filter }: ListRequest,
    find: (filter: StreamFilter) => readonly LiveStream[],
  ): StreamPage {
    const found = find({ ...filter, limit: limit + 1 })
    const streams = found.slice(0, limit)
    return {
      streams: streams.map((stream) => this.#describe(stream)),
      ...(found.length > limit && { next: streams.at(-1)!.id }),
      ...this.#service,
    }
  }

  #describe(stream: LiveStream): Omit<StreamRecord, 'service'> {
    const { urlsOf, hasPlaybackSecret, audienceOf, ownTermsOf, ownershipOf } = this.#options
    return {
      ...stream.report(),
      ...audienceOf(stream),
      ...urlsOf(stream),
      playbackToken: hasPlaybackSecret && stream.terms.playbackToken !== false,
      ...ownTermsOf(stream),
      ...ownershipOf?.(stream.id),
    }
  }

  get #service(): Pick<StreamRecord, 'service'> {
    const service = this.#options.readLoad()
    return service === undefined ? {} : { service }
  }
}
