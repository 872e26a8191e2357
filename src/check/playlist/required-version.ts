/**
 * Smallest EXT-X-VERSION that a playlist needs (RFC 8216bis 8).
 *
 * @module
 */
import { findTag, type Tag } from './tag-reader.ts'

export interface RequiredVersion {
  readonly version: number
  /** The first tag or attribute that needs it; undefined for version 1. */
  readonly reason: { readonly text: string; readonly line: number } | undefined
}

export function requiredVersion(playlist: { readonly tags: readonly Tag[] }): RequiredVersion {
  const hasIFramesOnly = findTag(playlist, 'EXT-X-I-FRAMES-ONLY') !== undefined
  let required: RequiredVersion = { version: 1, reason: undefined }
  for (const tag of playlist.tags) {
    const need = versionOf(tag, hasIFramesOnly)
    if (need === undefined || need[0] <= required.version) continue
    required = { version: need[0], reason: { text: need[1], line: tag.line } }
  }
  return required
}

function versionOf(
  { name, value, attributes }: Tag,
  hasIFramesOnly: boolean,
): readonly [version: number, reason: string] | undefined {
  const layout = [...attributes.keys()].find((attribute) => attribute.startsWith('REQ-'))
  if (layout !== undefined) return [12, layout]
  switch (name) {
    case 'EXTINF':
      return /^\d+\./.test(value) ? [3, 'a decimal EXTINF'] : undefined
    case 'EXT-X-BYTERANGE':
    case 'EXT-X-I-FRAMES-ONLY':
      return [4, `#${name}`]
    case 'EXT-X-MAP':
      return [hasIFramesOnly ? 5 : 6, `#${name}`]
    case 'EXT-X-KEY':
      if (attributes.has('KEYFORMAT') || attributes.has('KEYFORMATVERSIONS'))
        return [5, 'KEYFORMAT']
      if (attributes.get('METHOD') === 'SAMPLE-AES') return [5, 'METHOD=SAMPLE-AES']
      return attributes.has('IV') ? [2, 'IV'] : undefined
    case 'EXT-X-DEFINE':
      return attributes.has('QUERYPARAM') ? [11, 'QUERYPARAM'] : [8, `#${name}`]
    case 'EXT-X-SKIP':
      return attributes.has('RECENTLY-REMOVED-DATERANGES')
        ? [10, 'RECENTLY-REMOVED-DATERANGES']
        : [9, `#${name}`]
    case 'EXT-X-MEDIA':
      if (!attributes.has('INSTREAM-ID')) return undefined
      if (attributes.get('TYPE') !== 'CLOSED-CAPTIONS') return [13, 'INSTREAM-ID']
      return attributes.get('INSTREAM-ID')!.includes('SERVICE') ? [7, 'INSTREAM-ID'] : undefined
    default:
      return undefined
  }
}
