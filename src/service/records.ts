/**
 * Records of streams, with the load of the process that serves them.
 *
 * @module
 */
import { MAX_PAGE_STREAMS, type ListRequest } from '../api/requests.ts'
import type {
  ArchiveReport,
  KeyReport,
  PeerReport,
  PushReport,
  ServiceReport,
  PlaybackUrls,
  StreamPage,
  StreamRecord,
} from '../api/records.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { StreamFilter } from '../stream/stream-registry.ts'

/** Describes who watches a stream. */
export type AudienceOf = (stream: LiveStream) => Pick<StreamRecord, 'viewers' | 'edges'>

/** Describes the owner of a stream. */
export type StreamOwner = Pick<StreamRecord, 'node' | 'fence' | 'pendingWrites' | 'publishPort'>

interface RecordsOptions {
  readonly urlsOf: (stream: LiveStream) => PlaybackUrls
  /** See `StreamsOptions`. */
  readonly hasPlaybackSecret: boolean
  readonly audienceOf: AudienceOf
  readonly ownPolicyOf: (
    stream: LiveStream,
  ) => Pick<StreamRecord, 'options' | 'bannedUntil' | 'publishPort'>
  readonly keysOf: (stream: LiveStream) => readonly KeyReport[]
  /** @returns undefined for a stream without `pull_url` */
  readonly pullOf: (stream: LiveStream) => PeerReport | undefined
  readonly pushesOf: (stream: LiveStream) => readonly PushReport[]
  /** @returns undefined for a stream without an archive */
  readonly archiveOf: (stream: LiveStream) => ArchiveReport | undefined
  /** Describes this node of the cluster as the owner of a stream; undefined without a cluster. */
  readonly ownershipOf?: (streamId: string) => StreamOwner | undefined
  /** @returns undefined until the service listens */
  readonly readLoad: () => ServiceReport | undefined
}

export class Records {
  readonly #options: RecordsOptions

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  of(stream: LiveStream): StreamRecord {
    const keys = this.#options.keysOf(stream)
    return { ...this.#describe(stream), keys, ...this.#service }
  }

  /** Page of records that others have made. */
  pageOf(streams: readonly StreamRecord[], next: string | undefined): StreamPage {
    return {
      streams: streams.map((record) => {
        const { service: _1, keys: _2, ...stream } = record
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

  #describe(stream: LiveStream): Omit<StreamRecord, 'service' | 'keys'> {
    const { urlsOf, hasPlaybackSecret, audienceOf, ownPolicyOf, ownershipOf } = this.#options
    const pull = this.#options.pullOf(stream)
    const archive = this.#options.archiveOf(stream)
    return {
      ...stream.report(),
      ...audienceOf(stream),
      ...urlsOf(stream),
      playbackToken: hasPlaybackSecret && stream.policy.playbackToken !== false,
      ...ownPolicyOf(stream),
      ...(pull && { pull }),
      pushes: this.#options.pushesOf(stream),
      ...(archive && { archive }),
      ...ownershipOf?.(stream.id),
    }
  }

  get #service(): Pick<StreamRecord, 'service'> {
    const service = this.#options.readLoad()
    return service === undefined ? {} : { service }
  }
}
