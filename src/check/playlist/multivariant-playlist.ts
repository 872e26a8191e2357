/**
 * Multivariant playlist as a client sees it (RFC 8216bis 4.4.6), each fact with its line.
 *
 * @module
 */
import { resolve } from './media-playlist.ts'
import { decimal, findTag, findTags, isTag, readLines, unquoted, type Tag } from './tag-reader.ts'

/** EXT-X-STREAM-INF with the URI below it. */
export interface ParsedVariant {
  readonly tag: Tag
  readonly uri: string
  readonly url: string
  readonly bandwidthBps: number | undefined
  readonly averageBandwidthBps: number | undefined
  /** CODECS, apart; empty without the attribute. */
  readonly codecs: readonly string[]
  readonly resolution: { readonly width: number; readonly height: number } | undefined
  readonly frameRate: number | undefined
  readonly videoRange: string | undefined
  /** GROUP-ID of AUDIO, VIDEO, SUBTITLES; CLOSED-CAPTIONS as written, `NONE` included. */
  readonly audio: string | undefined
  readonly video: string | undefined
  readonly subtitles: string | undefined
  readonly closedCaptions: string | undefined
}

/** EXT-X-MEDIA */
export interface ParsedRendition {
  readonly tag: Tag
  readonly type: string | undefined
  readonly groupId: string | undefined
  readonly name: string | undefined
  readonly language: string | undefined
  /** Undefined for media in the variants' own segments. */
  readonly uri: string | undefined
  readonly url: string | undefined
}

export interface ParsedMultivariant {
  readonly url: string
  readonly text: string
  readonly tags: readonly Tag[]
  readonly independentSegments: boolean
  readonly variants: readonly ParsedVariant[]
  readonly renditions: readonly ParsedRendition[]
}

export function isMultivariant(text: string): boolean {
  return /^#EXT-X-(STREAM-INF|MEDIA|I-FRAME-STREAM-INF):/m.test(text)
}

/** @param url  of the playlist, after redirects */
export function parseMultivariantPlaylist(text: string, url: string): ParsedMultivariant {
  const lines = readLines(text)
  const variants: ParsedVariant[] = []
  let streamInf: Tag | undefined
  for (const entry of lines.entries) {
    if (isTag(entry)) {
      if (entry.name === 'EXT-X-STREAM-INF') streamInf = entry
    } else if (streamInf !== undefined) {
      variants.push(readVariant(streamInf, entry.uri, url))
      streamInf = undefined
    }
  }
  return {
    url,
    text,
    tags: lines.tags,
    variants,
    independentSegments: findTag(lines, 'EXT-X-INDEPENDENT-SEGMENTS') !== undefined,
    renditions: findTags(lines, 'EXT-X-MEDIA').map((tag) => readRendition(tag, url)),
  }
}

function readVariant(tag: Tag, uri: string, base: string): ParsedVariant {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(tag.attributes.get('RESOLUTION') ?? '') ?? []
  const codecs = unquoted(tag, 'CODECS')
  return {
    tag,
    uri,
    url: resolve(uri, base),
    bandwidthBps: decimal(tag, 'BANDWIDTH'),
    averageBandwidthBps: decimal(tag, 'AVERAGE-BANDWIDTH'),
    codecs: codecs === undefined ? [] : codecs.split(',').map((codec) => codec.trim()),
    resolution: width === undefined ? undefined : { width: Number(width), height: Number(height) },
    frameRate: decimal(tag, 'FRAME-RATE'),
    videoRange: tag.attributes.get('VIDEO-RANGE'),
    audio: unquoted(tag, 'AUDIO'),
    video: unquoted(tag, 'VIDEO'),
    subtitles: unquoted(tag, 'SUBTITLES'),
    closedCaptions: unquoted(tag, 'CLOSED-CAPTIONS'),
  }
}

function readRendition(tag: Tag, base: string): ParsedRendition {
  const uri = unquoted(tag, 'URI')
  return {
    tag,
    type: tag.attributes.get('TYPE'),
    groupId: unquoted(tag, 'GROUP-ID'),
    name: unquoted(tag, 'NAME'),
    language: unquoted(tag, 'LANGUAGE'),
    uri,
    url: uri === undefined ? undefined : resolve(uri, base),
  }
}
