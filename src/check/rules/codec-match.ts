/**
 * Comparison of CODECS with the formats of a bitstream (RFC 6381, RFC 8216bis 4.4.6.2).
 *
 * @module
 */

/** Names of one format, by the first element of the codec string in lower case. */
const FAMILIES: Readonly<Record<string, string>> = {
  avc1: 'H.264',
  avc3: 'H.264',
  dva1: 'H.264',
  dvav: 'H.264',
  hvc1: 'H.265',
  hev1: 'H.265',
  dvh1: 'H.265',
  dvhe: 'H.265',
  'ac-3': 'AC-3',
  'ec-3': 'E-AC-3',
  'ec+3': 'E-AC-3',
  mp3: 'MP3',
}

/** Object types of MPEG-4 and MPEG audio by the rest of `mp4a`. HE-AAC may look like AAC-LC. */
const MPEG_AUDIO: Readonly<Record<string, string>> = {
  '40.34': 'MP3',
  '69': 'MP3',
  '6b': 'MP3',
  '40.32': 'MP2',
  '40.33': 'MP2',
}

export function codecFamily(codec: string): string {
  const [name = '', ...rest] = codec.toLowerCase().split('.')
  if (name === 'mp4a') return MPEG_AUDIO[rest.join('.')] ?? 'AAC'
  return FAMILIES[name] ?? name
}

interface VideoLevel {
  readonly profile: string
  readonly level: number
}

/** Whether a listed codec promises the profile of the bitstream, and at least its level; true if unknown. */
export function promises(listed: string, found: string): boolean {
  const [a, b] = [videoLevel(listed), videoLevel(found)]
  if (a === undefined || b === undefined) return true
  return a.profile === b.profile && a.level >= b.level
}

function videoLevel(codec: string): VideoLevel | undefined {
  const h264 = /^avc[13]\.([0-9a-f]{2})[0-9a-f]{2}([0-9a-f]{2})$/i.exec(codec)
  if (h264 !== null) {
    return { profile: h264[1]!.toLowerCase(), level: Number.parseInt(h264[2]!, 16) }
  }
  const h265 = /^(?:hvc1|hev1)\.([abc]?\d+)\.[0-9a-f]+\.[lh](\d+)/i.exec(codec)
  if (h265 !== null) return { profile: h265[1]!.toLowerCase(), level: Number(h265[2]) }
  const av1 = /^av01\.(\d)\.(\d\d)[mh]/i.exec(codec)
  if (av1 !== null) return { profile: av1[1]!, level: Number(av1[2]) }
  return undefined
}
