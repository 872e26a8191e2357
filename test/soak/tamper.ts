/**
 * Builders of faults: what to change in which replies.
 *
 * @module
 */
import { type ProxyReply, type ProxyRequest, type Tamper, withText } from '../check/fault-proxy.ts'

const PLAYLIST = /\/cmaf-(video|audio)-\d\.m3u8(\?|$)/
const SECOND_AUDIO_PLAYLIST = /\/cmaf-audio-2\.m3u8(\?|$)/
const MULTIVARIANT = /\/master\.m3u8(\?|$)/
const MEDIA = /-(p?)(\d+)\.(ts|m4s)$/

export const isPlaylist = ({ url }: ProxyRequest): boolean => PLAYLIST.test(url)
export const isSecondAudio = ({ url }: ProxyRequest): boolean => SECOND_AUDIO_PLAYLIST.test(url)
export const isMultivariant = ({ url }: ProxyRequest): boolean => MULTIVARIANT.test(url)
export const isMedia = ({ url }: ProxyRequest): boolean => MEDIA.test(url)
export const isRead = ({ method, headers }: ProxyRequest): boolean =>
  method === 'GET' && headers['range'] === undefined

/** Media sequence number of a segment; undefined for other requests. */
export function sequenceOf({ url }: ProxyRequest): number | undefined {
  const [, part, number] = MEDIA.exec(url) ?? []
  return part === '' ? Number(number) : undefined
}

/** Serial number of a part; undefined for other requests. */
export function serialOf({ url }: ProxyRequest): number | undefined {
  const [, part, number] = MEDIA.exec(url) ?? []
  return part === 'p' ? Number(number) : undefined
}

type Pick = (request: ProxyRequest) => boolean

/** Changes the text of picked replies that are 200. */
export function editText(pick: Pick, edit: (text: string) => string): Tamper {
  return editReply(pick, (reply) => withText(reply, edit))
}

/** Changes the bytes of picked media. */
export function editMedia(pick: Pick, edit: (bytes: Buffer) => Buffer): Tamper {
  return editReply(
    (request) => isRead(request) && isMedia(request) && pick(request),
    (reply) => ({ ...reply, body: edit(reply.body) }),
  )
}

/** Changes picked replies that are 200. */
export function editReply(pick: Pick, edit: (reply: ProxyReply) => ProxyReply): Tamper {
  return async (request, origin) => {
    const reply = await origin(request)
    return pick(request) && reply.status === 200 ? edit(reply) : reply
  }
}

/** Sends another request in place of picked ones. */
export function redirect(pick: Pick, change: (request: ProxyRequest) => ProxyRequest): Tamper {
  return (request, origin) => origin(pick(request) ? change(request) : request)
}

/** Replies with a status of its own, without asking the origin. */
export function refuse(pick: Pick, status = 404): Tamper {
  return (request, origin) =>
    pick(request)
      ? Promise.resolve({ status, headers: CORS, body: Buffer.from('{}') })
      : origin(request)
}

export function editHeaders(
  pick: Pick,
  edit: (headers: Readonly<Record<string, string>>) => Record<string, string>,
): Tamper {
  return async (request, origin) => {
    const reply = await origin(request)
    return pick(request) ? { ...reply, headers: edit(reply.headers) } : reply
  }
}

const CORS = { 'access-control-allow-origin': '*', 'content-type': 'application/json' }

/** Lines of a playlist, edited one by one; those without a result are left out. */
export function eachLine(edit: (line: string) => string | undefined) {
  return (text: string): string =>
    text
      .split('\n')
      .map(edit)
      .filter((line) => line !== undefined)
      .join('\n')
}

/** Media sequence number of the newest complete segment. */
export function newestSequence(text: string): number {
  const first = Number(/^#EXT-X-MEDIA-SEQUENCE:(\d+)/m.exec(text)?.[1])
  return first + (text.match(/^#EXTINF/gm)?.length ?? 0) - 1
}
