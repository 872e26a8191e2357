/**
 * Response to a request for a file of a stream, whoever has taken the request from its server: who may have the file, the
 * file at once or after a wait, or why it is not there.
 *
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { machineClock } from '../timing/clock.ts'
import type { PlaybackTokenLimits, PlaybackTokens } from '../auth/playback-token.ts'
import { isStreamId } from '../auth/stream-id.ts'
import { MillraceError, type ErrorCode } from '../errors.ts'
import {
  isCmafAudioPlaylistUri,
  isPlaylistUri,
  MULTIVARIANT_URI,
  playlistUri,
  playlistUriOf,
  PREVIEW_URI,
  TS_MULTIVARIANT_URI,
} from '../hls/file-names.ts'
import { closingOf, writeResponse } from '../http/response.ts'
import { accessOf, type Viewer } from './access.ts'
import { readDirectives } from './directives.ts'
import { refuseFile, sendFile } from './file-response.ts'
import {
  borrowFile,
  type DeliveryDirectives,
  type PlayableStream,
  type PlaybackSource,
} from './playback-source.ts'
import { ViewerReports } from './viewer-reports.ts'
import { exchangeOf, WaitingRequests, type WaitEnd } from './waiting-requests.ts'

/** Called for each response with bytes of a file: its stream, the name of the file, and the size of the body. */
export type OnSent = (stream: PlayableStream, name: string, sizeBytes: number) => void

/** Options of playback: whose streams, and who may watch them. */
export interface PlaybackOptions {
  /** Queried for each request, with stream ids alone; names have 1 to 160 of their characters, and no leading dot. */
  readonly source: PlaybackSource
  /**
   * Verifies the `:token` in the prefix, for example `/t/:token/video`. Under a prefix without it, streams are refused
   * unless they are public. Undefined: no stream needs a token.
   */
  readonly tokens?: PlaybackTokens | undefined
  /** See `OnSent`. */
  readonly onSent?: OnSent | undefined
}

/** GET, HEAD or OPTIONS for a file of a stream. */
export interface PlaybackRequest extends Viewer {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Name of the file; undefined: the request asks for access to the stream alone, which requires `tokens`. */
  readonly name: string | undefined
  /** Answers a request that has waited with an internal failure. */
  readonly fail: (error: unknown) => void
}

/** A request for a file that the viewer may have. */
interface FileRequest {
  readonly asked: PlaybackRequest
  readonly stream: PlayableStream
  readonly name: string
  readonly directives: DeliveryDirectives
  readonly token: PlaybackTokenLimits | undefined
  /** End of its wait in milliseconds, by `machineClock`, if it has waited for the stream at an earlier owner. */
  readonly waitEndsMs?: number
}

/** `handle` each request; `close` before the server closes. */
export class PlaybackHandler {
  readonly #options: PlaybackOptions
  readonly #viewers: ViewerReports
  readonly #waiting = new WaitingRequests()

  constructor(options: PlaybackOptions) {
    this.#options = options
    this.#viewers = new ViewerReports(options.source)
  }

  /** Ends all waits, present and future. */
  close(): void {
    this.#waiting.close()
  }

  /** Responds at once or later. @throws {Error} what a source throws; nothing was sent then */
  handle(asked: PlaybackRequest): void {
    const { request, response, streamId, name } = asked
    if (request.method === 'OPTIONS') {
      writeResponse(response, 204, PREFLIGHT_HEADERS)
      return
    }
    const stream = this.#find(streamId)
    if (name === undefined) {
      this.#sendAccess(asked, stream)
      return
    }
    const access = accessOf(asked, stream, this.#options.tokens)
    if (typeof access === 'string') return refuseFile(response, refusalOf(access))
    if (stream === undefined) return refuseFile(response, NO_STREAM)
    if (!PLAIN_NAME.test(name)) return refuseFile(response, absence(stream))
    const directives = readDirectives(request, stream, name)
    if (directives instanceof MillraceError) return refuseFile(response, directives)
    this.#respond({ asked, stream, name, directives, token: access.token })
  }

  #find(streamId: string): PlayableStream | undefined {
    return isStreamId(streamId) ? this.#options.source.findStream(streamId) : undefined
  }

  /** For proxies that ask for access. */
  #sendAccess(asked: PlaybackRequest, stream: PlayableStream | undefined): void {
    const known = stream?.isRemote === true ? undefined : stream
    const access = accessOf(asked, known, this.#options.tokens)
    if (typeof access === 'string') refuseFile(asked.response, refusalOf(access))
    else writeResponse(asked.response, 204, ['Cache-Control', 'no-store'])
  }

  #respond(file: FileRequest): void {
    const { asked, stream, name, directives } = file
    const { mediaSequence, otherThan, skip } = directives
    const isPatient = mediaSequence !== undefined || otherThan !== undefined || skip === true
    // Most requests are for a file that exists.
    if (!isPatient && this.#sendCurrent(file)) return
    const availability = stream.files.availability?.(name, directives)
    if (availability === 'beyond') refuseFile(asked.response, TOO_FAR_AHEAD)
    else if (availability === 'future') this.#respondLater(file)
    else if (!isPatient || !this.#sendCurrent(file)) {
      refuseFile(asked.response, absence(stream, name))
    }
  }

  /** Waits for the file, then responds. */
  #respondLater(file: FileRequest): void {
    const { asked, stream, name, directives } = file
    const { files } = stream
    const nowMs = machineClock.nowUs() / 1000
    const { waitEndsMs = nowMs + maxWaitMs(stream, name) } = file
    this.#waiting.wait(exchangeOf(asked.response, asked.fail), {
      maxMs: waitEndsMs - nowMs,
      begin: (onOver) => {
        const onLagOver = () => setTimeout(onOver, AUDIO_LAG_MS)
        return files.wait?.(name, directives, isForAudio(file) ? onLagOver : onOver)
      },
      answer: (end) => {
        const next = stream.hasLeft === true ? this.#nextOwner(asked) : undefined
        if (next !== undefined && next !== stream) {
          this.#respond({ ...file, stream: next, waitEndsMs })
          return
        }
        // The version that the client has, 304, is a response as well.
        const isOver = end === 'over' || (end === 'late' && directives.otherThan !== undefined)
        if (isOver && this.#sendCurrent(file)) return
        const isAbsent = end === 'over' || (isPlaylistUri(name) && files.get(name) === undefined)
        const refusal = REFUSED_WAITS.get(end)
        refuseFile(asked.response, refusal ?? (isAbsent ? absence(stream, name) : MEDIA_LATE))
      },
    })
  }

  /** Another node looks for the next owner of a stream itself. */
  #nextOwner({ call, streamId }: PlaybackRequest): PlayableStream | undefined {
    return call === undefined ? this.#find(streamId) : undefined
  }

  /** @returns whether the file exists */
  #sendCurrent({ asked, stream, name, directives, token }: FileRequest): boolean {
    const loan = borrowFile(stream, name, directives)
    if (loan === undefined) return false
    const { request, response } = asked
    if (loan.end !== undefined) closingOf(response).once('close', loan.end)
    const isBlocking = directives.mediaSequence !== undefined
    const sizeBytes = sendFile(request, response, loan.file, { isBlocking, token })
    if (sizeBytes > 0) this.#options.onSent?.(stream, name, sizeBytes)
    if (!UNCOUNTED.has(name)) this.#viewers.push(asked, stream)
    return true
  }
}

const PLAIN_NAME = /^(?!\.)[A-Za-z0-9._~-]{1,160}$/

/**
 * Files that are no sign of a viewer: the preview, which pages show in lists of streams, and the multivariant playlists,
 * which players read once, hls.js 1.7 without its session id.
 */
const UNCOUNTED: ReadonlySet<string> = new Set([PREVIEW_URI, MULTIVARIANT_URI, TS_MULTIVARIANT_URI])

/**
 * Request headers that a preflight allows. The wildcard does not cover Authorization (Fetch standard, CORS non-wildcard
 * request-header name). Older browsers do not support the wildcard, so the list names the headers that players send,
 * including the CMCD headers (CTA-5004).
 */
const ALLOWED_HEADERS =
  '*, Authorization, Range, If-None-Match, If-Range, CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status'

const PREFLIGHT_HEADERS = Object.entries({
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, HEAD',
  'Access-Control-Allow-Headers': ALLOWED_HEADERS,
  'Access-Control-Max-Age': '86400',
}).flat()

/**
 * Time by which responses with a playlist of audio follow those of video. video.js (http-streaming 3.17) ignores a new part
 * of audio that is listed while it appends one of video: audio waits for the next playlist. With both responses at once it
 * stood still for 3.5 s; with 20 ms between them, which is as long as a part of video loads, for 0.5 s each minute.
 */
const AUDIO_LAG_MS = 60

/** Whether a player asks for a playlist of audio, and not another node, at which players wait. */
function isForAudio({ name, directives }: FileRequest): boolean {
  return directives.otherThan === undefined && isCmafAudioPlaylistUri(name)
}

/** Longest wait in milliseconds: players give up after 10 s. */
const MAX_WAIT_MS = 9000

/** Longest wait for a playlist, or for a part that it hints, in milliseconds. */
function maxWaitMs({ files }: PlayableStream, name: string): number {
  const playlist = files.get(isPlaylistUri(name) ? name : playlistUriOf(name))
  return Math.min(playlist?.blocking?.maxWaitMs ?? Infinity, MAX_WAIT_MS)
}

const NO_STREAM = new MillraceError('STREAM_NOT_FOUND')
const LEFT = new MillraceError('NOT_OWNER')
const NO_FILE = new MillraceError('FILE_NOT_FOUND')
const NO_PLAYLIST = new MillraceError('FILE_NOT_FOUND', {
  message: 'the stream has no playlist yet',
  retryAfterSec: 1,
})
const NO_PREVIEW = new MillraceError('FILE_NOT_FOUND', {
  message:
    'the stream has no video, no transport stream, no complete segment yet, or its key frames exceed 4 MiB',
})
const TOO_FAR_AHEAD = new MillraceError('MEDIA_TOO_FAR_AHEAD')
const MEDIA_LATE = new MillraceError('MEDIA_LATE')

/** Refusals of a request whose wait has not begun, or was ended by the server. */
const REFUSED_WAITS: ReadonlyMap<WaitEnd, MillraceError> = new Map([
  ['closing', new MillraceError('SHUTTING_DOWN')],
  ['refused', new MillraceError('TOO_MANY_WAITING')],
])

const accessRefusals = new Map<ErrorCode, MillraceError>()

/** One object for all refusals with a code, whose envelope is prepared once. */
function refusalOf(code: ErrorCode): MillraceError {
  const known = accessRefusals.get(code) ?? new MillraceError(code)
  accessRefusals.set(code, known)
  return known
}

/** A stream of an application may have either alone. */
const FIRST_PLAYLISTS = [MULTIVARIANT_URI, playlistUri('main')]

/** Reason for which a stream does not have a file. */
function absence({ files, status, hasLeft }: PlayableStream, name?: string): MillraceError {
  if (hasLeft === true) return LEFT
  const refusal = name === undefined ? undefined : files.refusal?.(name)
  if (refusal !== undefined) return refusal
  if (name === PREVIEW_URI) return NO_PREVIEW
  const hasPlaylist = FIRST_PLAYLISTS.some((playlist) => files.get(playlist) !== undefined)
  // With low latency, the multivariant playlist comes before the others.
  const isAwaited = name !== undefined && files.availability?.(name) === 'future'
  const isPlayable = status === 'STOPPED' || (hasPlaylist && !isAwaited)
  return isPlayable ? NO_FILE : NO_PLAYLIST
}
