/**
 * The calls of the API under the library's names.
 *
 * @module
 */
import type {
  ClipReport,
  ClusterNode,
  EncoderSource,
  StartedStream,
  StreamPage,
  StreamRecord,
} from './records.ts'
import type {
  ClipRequest,
  KickRequest,
  ListRequest,
  StartRequest,
  StopRequest,
} from './requests.ts'

/** Calls of the service, as HTTP and the library make them. All throw `MillraceError`, or reject with it. */
export interface StreamControl {
  /** Starts a stream, or issues another key for one that runs. */
  startStream(request: StartRequest): Promise<StartedStream>
  /** Ends a stream: disconnects its encoders and ends its playlists, which stay for `hls.lingerSec`. */
  stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord>
  /**
   * Refuses a stream key from now on, and disconnects the encoder that has connected with it.
   *
   * @param keyId  `keyId` in `keys` of a record
   */
  revokeKey(streamId: string, keyId: string): Promise<StreamRecord>
  /** Disconnects the encoder, which may connect again after `banSec`. */
  kick(streamId: string, request?: KickRequest): StreamRecord | Promise<StreamRecord>
  /** Puts an encoder on air at its next key frame, and fails back to it from now on. */
  switchSource(streamId: string, source: EncoderSource): StreamRecord | Promise<StreamRecord>
  /** Makes a playlist of a part of an archive. */
  clip(streamId: string, request: ClipRequest): Promise<ClipReport>
  /** State, figures, options and warnings of a stream. */
  status(streamId: string): StreamRecord | Promise<StreamRecord>
  /** A page of the streams in the order of their ids. */
  list(request?: ListRequest): StreamPage | Promise<StreamPage>
  /** Ingest nodes of the cluster; absent without one. */
  nodes?(): Promise<readonly ClusterNode[]>
}
