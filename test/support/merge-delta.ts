/**
 * Delta updates as text, byte by byte: a second opinion on the merge that the judge makes of what it has parsed.
 *
 * @module
 */

/**
 * Full playlist that a client makes of a delta update and the full playlist it has (RFC 8216bis 6.3.7). EXT-X-MAP after
 * EXT-X-SKIP is the one that applies there; a full playlist has it at its head, and where it changes.
 */
export function mergeDelta(known: string, delta: string): string {
  const skip = /^#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)\n(#EXT-X-MAP:.*\n)?/m.exec(delta)
  if (skip === null) return delta
  const sequence = (text: string) => Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1])
  const first = sequence(delta) - sequence(known)
  const blocks = segmentBlocks(known)
  const kept = blocks.slice(first, first + Number(skip[1])).join('')
  if (blocks.length < first + Number(skip[1])) throw new Error('the known playlist is too old')
  const mapBefore = latestMap(blocks.slice(0, first).join(''))
  const head = blocks[first]?.includes('#EXT-X-MAP') === true ? '' : mapBefore
  const merged = head + kept
  const [, , map = ''] = skip
  const [version = ''] = /^#EXT-X-VERSION:.*/m.exec(known) ?? []
  const changed = map === latestMap(merged) ? '' : map
  return delta.replace(skip[0], merged + changed).replace('#EXT-X-VERSION:9', version)
}

/** @returns empty without one */
function latestMap(text: string): string {
  return text.match(/^#EXT-X-MAP:.*\n/gm)?.at(-1) ?? ''
}

/** Lines of each complete segment, without its parts; the first one has EXT-X-MAP of the head. */
function segmentBlocks(text: string): string[] {
  const tags = /^#(EXT-X-(GAP|MAP:|DISCONTINUITY$|PROGRAM-DATE-TIME)|EXTINF)|^[^#]/
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
