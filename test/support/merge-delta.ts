/**
 * Delta updates as text, byte by byte: a second opinion on the merge that the judge makes of what it has parsed.
 *
 * @module
 */

/**
 * Full playlist that a client makes of a delta update and the full playlist it has (RFC 8216bis 6.3.7). EXT-X-MAP after
 * EXT-X-SKIP is that of the skipped segments, which a full playlist has before them.
 */
export function mergeDelta(known: string, delta: string): string {
  const skip = /^#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)\n(#EXT-X-MAP:.*\n)?/m.exec(delta)
  if (skip === null) return delta
  const sequence = (text: string) => Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1])
  const first = sequence(delta) - sequence(known)
  const blocks = segmentBlocks(known).slice(first, first + Number(skip[1]))
  if (blocks.length !== Number(skip[1])) throw new Error('the known playlist is too old')
  const [, , map = ''] = skip
  if (known.match(MAPS)?.some((each) => each !== map) ?? map !== '')
    throw new Error(`another init segment after the skipped segments: ${map}`)
  const [version = ''] = /^#EXT-X-VERSION:.*/m.exec(known) ?? []
  return delta.replace(skip[0], map + blocks.join('')).replace('#EXT-X-VERSION:9', version)
}

const MAPS = /^#EXT-X-MAP:.*\n/gm

/** Lines of each complete segment, without its parts. */
function segmentBlocks(text: string): string[] {
  const tags = /^#(EXT-X-(GAP|DISCONTINUITY$|PROGRAM-DATE-TIME)|EXTINF)|^[^#]/
  let block = ''
  return text.split('\n').flatMap((line) => {
    if (line === '' || !tags.test(line)) return []
    block += `${line}\n`
    if (line.startsWith('#')) return []
    const complete = block
    block = ''
    return [complete]
  })
}
