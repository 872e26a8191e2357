/**
 * Records of streams of other nodes: as their owners answer, or as the registry has them.
 *
 * @module
 */
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import type { CallNode } from '../call-node.ts'
import { MAX_PAGE_STREAMS, StreamId } from '../../../api/requests.ts'
import { MillraceError } from '../../../errors.ts'
import type { RegisteredStream } from '../../registry/registered.ts'
import { decodeOptions } from '../../registry/registered-options.ts'
import type { Format } from '../../../hls/file-names.ts'
import { reportKeys } from '../registered/registered-keys.ts'
import type { KeyReport, PeerReport, StreamRecord } from '../../../api/records.ts'
import type { PublicUrls } from '../../../service/public-urls.ts'
import { ownOptions } from '../../../service/stream-defaults.ts'

/** Time limit of a response, in milliseconds: afterwards the registry has to do. */
const RESPONSE_MS = 300

/** Name of the call, see `NodeRoutes`. */
export const RECORDS = 'records'

const Request = Type.Object({
  streamIds: Type.Array(StreamId, { maxItems: MAX_PAGE_STREAMS }),
  /** Whether the owner is to read what the registry has of the streams first. */
  refresh: Type.Boolean(),
})

interface RecordRequest {
  readonly streamIds: readonly string[]
  readonly refresh: boolean
}

/**
 * @param call  see `callNode`
 * @returns records of those streams that the node owns; undefined if it does not answer
 */
export async function askRecords(
  call: CallNode,
  url: string | undefined,
  request: RecordRequest,
): Promise<ReadonlyMap<string, StreamRecord> | undefined> {
  if (url === undefined) return undefined
  try {
    const asked = { url, call: RECORDS, body: request, timeoutMs: RESPONSE_MS }
    const { records } = (await call(asked)) as { records: readonly StreamRecord[] }
    return new Map(records.map((record) => [record.streamId, parseRecord(record)]))
  } catch {
    return undefined
  }
}

/** @throws {MillraceError} `BODY_INVALID` */
export function parseRecordRequest(body: unknown): RecordRequest {
  if (!Check(Request, body)) throw new MillraceError('BODY_INVALID')
  return body
}

export interface StoredRecordOptions {
  readonly urls: Pick<PublicUrls, 'playback'>
  /** Whether viewers need playback tokens, unless the stream is public. */
  readonly hasPlaybackSecret: boolean
  /** `HLS_FORMATS` */
  readonly formats: readonly Format[]
  /** `HLS_PLAYLIST_SEGMENTS` */
  readonly playlistSegments: number
  readonly wallMs: number
}

/** Sums of a stream that no encoder has published to. */
export const NO_TOTALS = {
  segments: 0,
  segmentBytes: 0,
  durationSec: 0,
  dropped: {},
  packetsDamaged: 0,
  publishers: 0,
  sourceChanges: 0,
  srtBytesSent: 0,
} as const

/** Figures of a stream that no encoder has published to. */
const NO_FIGURES = {
  live: false,
  sources: [],
  readers: [],
  pushes: [],
  tracks: [],
  queuedBytes: 0,
  totals: NO_TOTALS,
  warnings: [],
  viewers: 0,
} as const

/** Record of what the registry has, which is everything as long as no node owns the stream. */
export function storedRecord(
  registered: RegisteredStream,
  { urls, hasPlaybackSecret, formats, playlistSegments, wallMs }: StoredRecordOptions,
): StreamRecord {
  const { id, status, owner, fence, startedAtMs, options } = registered
  const shared = decodeOptions(options)
  const { media = {}, playbackToken, bannedUntilMs = 0, publishPort } = shared
  return {
    ...NO_FIGURES,
    streamId: id,
    status,
    startedAt: new Date(startedAtMs),
    playlist: {
      listedSegments: 0,
      wantedSegments: media.playlistSegments ?? playlistSegments,
      releasedEarly: 0,
      gaps: 0,
    },
    ...urls.playback(id, media.formats ?? formats),
    playbackToken: hasPlaybackSecret && playbackToken !== false,
    options: ownOptions({ ...shared, ...media }),
    keys: reportKeys(registered, wallMs),
    ...(bannedUntilMs > wallMs && { bannedUntil: new Date(bannedUntilMs) }),
    ...(publishPort !== undefined && status !== 'STOPPED' && { publishPort }),
    ...(owner !== undefined && { node: owner, fence, stale: true }),
  }
}

/** @param json  record of another node, which has signed for it */
function parseRecord(json: StreamRecord): StreamRecord {
  const { startedAt, liveSince, interruption, stopsAt, bannedUntil, pull } = json
  const { readers, pushes, keys } = json
  return {
    ...json,
    startedAt: new Date(startedAt),
    ...(liveSince !== undefined && { liveSince: new Date(liveSince) }),
    ...(interruption && { interruption: { ...interruption, since: new Date(interruption.since) } }),
    ...(stopsAt !== undefined && { stopsAt: new Date(stopsAt) }),
    ...(bannedUntil !== undefined && { bannedUntil: new Date(bannedUntil) }),
    ...(pull && { pull: parsePeer(pull) }),
    readers: readers.map((reader) => ({ ...reader, since: new Date(reader.since) })),
    pushes: pushes.map(parsePeer),
    ...(keys && { keys: keys.map(parseKey) }),
  }
}

function parseKey({ issuedAt, expiresAt, lastUsedAt, ...key }: KeyReport): KeyReport {
  return {
    ...key,
    ...(issuedAt !== undefined && { issuedAt: new Date(issuedAt) }),
    expiresAt: new Date(expiresAt),
    ...(lastUsedAt !== undefined && { lastUsedAt: new Date(lastUsedAt) }),
  }
}

function parsePeer<Report extends PeerReport>({ since, nextCallAt, ...peer }: Report) {
  return {
    ...peer,
    since: new Date(since),
    ...(nextCallAt !== undefined && { nextCallAt: new Date(nextCallAt) }),
  }
}
