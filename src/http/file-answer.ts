/**
 * Answer to a request for a file of a stream, however the request came: the file at once, the file after a wait, or why
 * it is not there.
 *
 * @module
 */
import { machineClock } from '../clock.ts'
import type { DeliveryDirectives, FileLoan, PlayableStream } from '../contract/streams.ts'
import { MillraceError } from '../errors.ts'
import { isPlaylist } from './directives.ts'
import { borrowFile, PREVIEW_URI } from './file-loan.ts'
import type { Exchange, WaitingRequests } from './waiting-requests.ts'

/** A request for a file of a stream. */
export interface FileRequest {
  readonly stream: PlayableStream
  readonly name: string
  readonly directives: DeliveryDirectives
  readonly reply: FileReply
  readonly exchange: Exchange
  /** Finds the stream at its next owner, when it has left. */
  readonly findNext: () => PlayableStream | undefined
  /** Whether it waits only for the next version of a file that is there: any other name may be a guess. */
  readonly onlyKnown: boolean
  /** End of its wait in milliseconds, by `machineClock`, if it has waited for the stream at an earlier owner. */
  readonly waitEndsMs?: number
}

/** Reply to such a request; one of the methods is called, once. */
export interface FileReply {
  /**
   * @param loan  ends with the reply
   * @param isBlocking  whether the URL names media that the file has, and so never names later media (RFC 8216bis
   *   appendix B.1)
   */
  send(stream: PlayableStream, name: string, loan: FileLoan, isBlocking: boolean): void
  refuse(refusal: MillraceError): void
}

/** Called for each reply with bytes of a file: its stream, the name of the file, and the size of the body. */
export type OnSent = (stream: PlayableStream, name: string, sizeBytes: number) => void

/** @returns false if nothing was sent: the request would wait for a file that is not known */
export function answerFile(asked: FileRequest, waiting: WaitingRequests): boolean {
  const { reply, stream, name, directives } = asked
  // Most requests are for a file that exists.
  const { mediaSequence, otherThan, skip } = directives
  const isPatient = mediaSequence !== undefined || otherThan !== undefined || skip === true
  if (!isPatient && sendCurrent(asked)) return true
  const availability = stream.files.availability?.(name, directives)
  if (availability === 'beyond') reply.refuse(TOO_FAR_AHEAD)
  else if (availability === 'future') return answerLater(asked, waiting)
  else if (!isPatient || !sendCurrent(asked)) reply.refuse(absence(stream, name))
  return true
}

/** Waits for the file, then answers. */
function answerLater(asked: FileRequest, waiting: WaitingRequests): boolean {
  const { reply, exchange, stream, name, directives } = asked
  const { files } = stream
  const known = isPlaylist(name) ? files.get(name) : undefined
  if (known === undefined && asked.onlyKnown) return false
  const nowMs = machineClock.nowUs() / 1000
  const { waitEndsMs = nowMs + maxWaitMs(stream, name) } = asked
  waiting.wait(exchange, {
    maxMs: waitEndsMs - nowMs,
    begin: (onOver) => {
      const onLagOver = () => setTimeout(onOver, AUDIO_LAG_MS)
      return files.wait?.(name, directives, isForAudio(asked) ? onLagOver : onOver)
    },
    answer: (end) => {
      const next = stream.hasLeft === true ? asked.findNext() : undefined
      if (next !== undefined && next !== stream) {
        answerFile({ ...asked, stream: next, onlyKnown: false, waitEndsMs }, waiting)
        return
      }
      // The version that the client has, 304, is an answer as well.
      const isOver = end === 'over' || (end === 'late' && directives.otherThan !== undefined)
      if (isOver && sendCurrent(asked)) return
      const isAbsent = end === 'over' || (isPlaylist(name) && files.get(name) === undefined)
      if (end === 'closing') reply.refuse(CLOSING)
      else if (end === 'refused') reply.refuse(TOO_MANY_WAITING)
      else reply.refuse(isAbsent ? absence(stream, name) : MEDIA_LATE)
    },
  })
  return true
}

/**
 * Time by which replies with a playlist of audio follow those of video. http-streaming 3.17 forgets a part until the next
 * reload, if it reads of it while it appends one of the other kind: with both replies at once audio stood still for 3.5 s,
 * and for 0.5 s each minute after 20 ms, in which a part of video is loaded.
 */
const AUDIO_LAG_MS = 60

/** Whether a player asks for a playlist of audio (`hls/file-names.ts`), and not another node, at which players wait. */
function isForAudio({ name, directives }: FileRequest): boolean {
  return directives.otherThan === undefined && /^cmaf-audio-\d+\.m3u8$/.test(name)
}

/** Longest wait in milliseconds: players give up after 10 s. */
const MAX_WAIT_MS = 9000

/** Longest wait for a playlist, or for a part that it hints, in milliseconds. */
function maxWaitMs({ files }: PlayableStream, name: string): number {
  const playlist = files.get(isPlaylist(name) ? name : playlistOf(name))
  return Math.min(playlist?.blocking?.maxWaitMs ?? Infinity, MAX_WAIT_MS)
}

/** Files of CMAF renditions, see `hls/file-names.ts`. */
const CMAF_FILE = /-([av])(\d+)-\w+\.(?:m4s|mp4)$/

/** Media playlist of the rendition of a file. */
function playlistOf(name: string): string {
  const [, kind, number] = CMAF_FILE.exec(name) ?? []
  return kind === undefined
    ? 'playlist.m3u8'
    : `cmaf-${kind === 'v' ? 'video' : 'audio'}-${number}.m3u8`
}

/** @returns whether the file exists */
function sendCurrent({ reply, stream, name, directives }: FileRequest): boolean {
  const loan = borrowFile(stream, name, directives)
  if (loan === undefined) return false
  reply.send(stream, name, loan, directives.mediaSequence !== undefined)
  return true
}

export const NO_STREAM = new MillraceError('STREAM_NOT_FOUND')
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
const TOO_MANY_WAITING = new MillraceError('TOO_MANY_WAITING')
const MEDIA_LATE = new MillraceError('MEDIA_LATE')
const CLOSING = new MillraceError('SHUTTING_DOWN')

/** Every stream has the multivariant playlist; streams of an application may have the other one alone. */
const FIRST_PLAYLISTS = ['master.m3u8', 'playlist.m3u8']

/** Reason for which a stream does not have a file. */
export function absence({ files, status, hasLeft }: PlayableStream, name?: string): MillraceError {
  if (hasLeft === true) return LEFT
  const refusal = name === undefined ? undefined : files.refusal?.(name)
  if (refusal !== undefined) return refusal
  if (name === PREVIEW_URI) return NO_PREVIEW
  const hasPlaylist = FIRST_PLAYLISTS.some((playlist) => files.get(playlist) !== undefined)
  const isPlayable = status === 'STOPPED' || hasPlaylist
  return isPlayable ? NO_FILE : NO_PLAYLIST
}
