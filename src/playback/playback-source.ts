/**
 * Streams as playback reads them. `Server` implements these interfaces; code of an integrator may implement them instead.
 *
 * @module
 */
import type { StreamState } from '../api/records.ts'
import type { MillraceError } from '../errors.ts'
import type { Availability, DeliveryDirectives } from '../hls/store/delivery-directives.ts'
import type { FileLoan, StreamFiles } from '../hls/store/file-store.ts'
import type { StreamFile } from '../hls/store/stream-file.ts'

export type { Availability, DeliveryDirectives, FileLoan, StreamFile }

/** Source of streams for playback. */
export interface PlaybackSource {
  /** @returns undefined for an unknown stream, or one stopped longer than `HLS_LINGER_SEC` ago */
  findStream(streamId: string): PlayableStream | undefined
  /**
   * Counts a viewer to whom a file of the stream is sent; default: viewers are not counted. The identity is personal data,
   * not to be stored or logged.
   */
  countViewer?(stream: PlayableStream, viewer: ViewerIdentity): void
}

/** Texts that tell a viewer from others: the session id of a player, or the address and User-Agent of a client. */
export type ViewerIdentity = readonly string[]

/** Files of which some are elsewhere: at the origin of an edge, or in an archive. */
export interface FileRefusals {
  /** Why a file that is not there was refused; undefined if that is unknown. */
  refusal(name: string): MillraceError | undefined
}

/** A stream as playback reads it. */
export interface PlayableStream {
  readonly status: StreamState
  readonly live: boolean
  /** Whether some playlists have not appeared yet, so that it was never `live`; default: not told to viewers. */
  readonly isBeginning?: boolean
  /** Time of the latest change of `status`, in milliseconds since 1970; default: not told to viewers. */
  readonly stateSinceMs?: number
  /** Time at which an interrupted stream stops by itself, in milliseconds since 1970; default: not told to viewers. */
  readonly stopsAtMs?: number | undefined
  /** Name of the source on air (`main`, `backup`, `slate`), undefined without one; default: not told to viewers. */
  readonly onAir?: string | undefined
  /** Whether another node owns the stream, which alone knows whether it is public; default: false. */
  readonly isRemote?: boolean
  /** Whether another node continues the stream; default: false. */
  readonly hasLeft?: boolean
  /** `playbackToken: false`: public although the service has `PLAYBACK_SECRET`. */
  readonly policy?: { readonly playbackToken?: boolean }
  /** Playlists, segments and parts by their names in the URL; `get` is enough without delivery directives. */
  readonly files: Pick<StreamFiles, 'get'> & Partial<StreamFiles & FileRefusals>
}

/** Borrows a file, also from a stream whose `files` have no `lend`; undefined if the file does not exist. */
export function borrowFile(
  stream: PlayableStream | undefined,
  name: string,
  directives?: DeliveryDirectives,
): FileLoan | undefined {
  const files = stream?.files
  if (files?.lend !== undefined) return files.lend(name, directives)
  const file = files?.get(name, directives)
  return file && { file, end: undefined }
}
