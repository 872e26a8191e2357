/**
 * Delta updates as text, byte by byte: a second opinion on the merge that the judge makes of what it has parsed.
 *
 * @module
 */

/** Full playlist that a client makes of a delta update and the full playlist it has (RFC 8216bis 6.3.7). */
export function mergeDelta(known: string, delta: string): string {
  const skip = /^#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)\n/m.exec(delta)
  if (skip === null) return delta
  const sequence = (text: string) => Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1])
  const first = sequence(delta) - sequence(known)
  const blocks = segmentBlocks(known).slice(first, first + Number(skip[1]))
  if (blocks.length !== Number(skip[1])) throw new Error('the known playlist is too old')
  return delta.replace(skip[0], blocks.join('')).replace('#EXT-X-VERSION:9', '#EXT-X-VERSION:3')
}

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
