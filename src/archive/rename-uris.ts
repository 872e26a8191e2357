/**
 * Multivariant playlist of a clip, from that of the whole run.
 *
 * @module
 */

/** @returns the multivariant playlist with other URIs; a rendition without one is left out */
export function renameUris(multivariant: string, uris: ReadonlyMap<string, string>): string {
  const groups = new Set<string>()
  const ofAudio = multivariant.replaceAll(
    /^#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="(.*?)".*\n/gm,
    (line, group: string) => {
      const [, uri] = /URI="(.*?)"/.exec(line) ?? []
      const renamed = uri === undefined ? undefined : uris.get(uri)
      if (uri !== undefined && renamed === undefined) return ''
      groups.add(group)
      return uri === undefined ? line : line.replace(`URI="${uri}"`, `URI="${renamed}"`)
    },
  )
  return ofAudio.replaceAll(
    /^(#EXT-X-STREAM-INF:.*\n)(.*)\n/gm,
    (_, attributes: string, uri: string) => {
      const renamed = uris.get(uri)
      if (renamed === undefined) return ''
      const [audio = '', group = ''] = /,AUDIO="(.*?)"/.exec(attributes) ?? []
      return `${groups.has(group) ? attributes : attributes.replace(audio, '')}${renamed}\n`
    },
  )
}
