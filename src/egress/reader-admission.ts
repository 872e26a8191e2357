/**
 * Admission of readers: decides whether a caller may read a stream over SRT, and connects it to the stream.
 *
 * @module
 */
import { parsePlayRequest, verifyPlayToken, type PlayRequest } from '../auth/srt-play-token.ts'
import { MillraceError } from '../errors.ts'
import type { AcceptDecision, ConnectionRequest } from '../srt/types.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { StreamPolicy } from '../stream/live-stream-options.ts'
import type { Clock } from '../timing/clock.ts'
import { SrtReader } from './srt-reader.ts'

/** Readers of one stream, as a share of all. */
const STREAM_SHARE = 1 / 2

/** Streams as readers see them. */
export interface ReadableStreams {
  /** @returns undefined for an unknown id */
  find(streamId: string): LiveStream | undefined
  /** @returns a running stream at the node of the cluster that owns it; undefined without one */
  locate?(streamId: string): Promise<LocatedStream | undefined>
}

interface LocatedStream {
  /** URL of its node. */
  readonly url: string
  readonly policy: ReadPolicy
  /** That node, where readers come to it by the SRT port of this one. */
  readonly takenBy?: string | undefined
}

/** `playbackToken: false`: readers need no token although there is `PLAYBACK_SECRET`. */
type ReadPolicy = Pick<StreamPolicy, 'playbackToken'>

interface ReaderAdmissionOptions {
  readonly streams: ReadableStreams
  /** Reads the values of `PLAYBACK_SECRET`; empty: readers need no token. */
  readonly readPlaybackSecrets: () => readonly string[]
  readonly maxReaders: number
  /** Whether the process reads packets more slowly than they arrive. */
  readonly isOverloaded: () => boolean
  readonly clock: Clock
  /** Called for each refusal; `stream` is the one that the reader asked for, undefined if it is not here. */
  readonly onRejected: (
    remote: string,
    error: MillraceError,
    stream: LiveStream | undefined,
  ) => void
  /** Called when a reader has connected, and when it has disconnected. */
  readonly onReader: (stream: LiveStream, remote: string, event: 'connected' | 'left') => void
}

interface ReadRequest extends ConnectionRequest {
  /** See `PublishRequest`. */
  readonly moveAway?: ((error: MillraceError) => Promise<boolean>) | undefined
}

/** Decides on a caller; undefined for one that does not ask to read. */
export type AdmitReader = (request: ReadRequest) => Promise<AcceptDecision | undefined>

export function createReaderAdmission(options: ReaderAdmissionOptions): AdmitReader {
  const { streams, readPlaybackSecrets, maxReaders, isOverloaded, clock } = options
  const { onRejected, onReader } = options
  let readers = 0

  return async (caller) => {
    const { streamId, remoteAddress, remotePort } = caller
    const remote = `${remoteAddress}:${remotePort}`
    let stream: LiveStream | undefined
    try {
      const request = parsePlayRequest(streamId)
      if (request === undefined) return undefined
      stream = streams.find(request.rid)
      const isHere = stream !== undefined && stream.status !== 'STOPPED'
      const elsewhere = isHere ? undefined : await locate(request)
      await checkToken(request, (elsewhere ?? stream)?.policy)
      if (elsewhere !== undefined) throw notOwner(elsewhere)
      if (stream === undefined) throw new MillraceError('STREAM_NOT_FOUND')
      const refusal = refusalOf(stream)
      if (refusal !== undefined) throw refusal
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      if (!(await caller.moveAway?.(error))) onRejected(remote, error, stream)
      return { reject: error.rejectCode }
    }
    const read = stream
    const passphrase = read.encryption?.passphrase
    return {
      sends: true,
      sink: new SrtReader(clock, {
        open: (reader) => {
          // Other readers may have connected since the decision.
          const refusal = refusalOf(read)
          if (refusal !== undefined) {
            onRejected(remote, refusal, read)
            return false
          }
          readers++
          read.read(reader)
          onReader(read, remote, 'connected')
          return true
        },
        end: (reader) => {
          readers--
          read.unread(reader)
          onReader(read, remote, 'left')
        },
      }),
      onRefused: ({ code }) => onRejected(remote, new MillraceError(code), read),
      ...(passphrase !== undefined && { passphrase }),
    }
  }

  /**
   * Asks Redis for the node of a stream, for no caller with a bad token. One without the token that it may need gets the same
   * refusal whether Redis answers or not.
   */
  async function locate(request: PlayRequest): Promise<LocatedStream | undefined> {
    if (request.token !== undefined) await checkToken(request, undefined)
    try {
      return await streams.locate?.(request.rid)
    } catch (error) {
      await checkToken(request, undefined)
      throw error
    }
  }

  /**
   * An unknown stream is refused as well: callers without a token do not learn which ids exist. Where no token is needed, one
   * that is given must be good, too: a stream key never plays.
   */
  async function checkToken(request: PlayRequest, policy: ReadPolicy | undefined): Promise<void> {
    const secrets = readPlaybackSecrets()
    const isOpen = secrets.length === 0 || policy?.playbackToken === false
    if (isOpen && request.token === undefined) return
    await verifyPlayToken(request, { secrets, now: new Date(clock.wallMs()) })
  }

  /** @returns undefined if the stream takes a reader */
  function refusalOf(stream: LiveStream): MillraceError | undefined {
    if (stream.status === 'STOPPED') return new MillraceError('STREAM_NOT_FOUND')
    if (isOverloaded()) return new MillraceError('OVERLOADED')
    const share = Math.ceil(maxReaders * STREAM_SHARE)
    const hasRoom = readers < maxReaders && stream.readers < share
    return hasRoom ? undefined : new MillraceError('TOO_MANY_READERS')
  }
}

function notOwner({ url, takenBy }: LocatedStream): MillraceError {
  const message = `the stream is at ${url}: readers must call that node`
  return new MillraceError('NOT_OWNER', { message, ...(takenBy && { takenBy }) })
}
