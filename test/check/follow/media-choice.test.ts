/** Which media a client loads: init segments once, before the media that needs them. */
import t from 'tap'
import { MediaChoice } from '../../../src/check/follow/media-choice.ts'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'

const URL_OF_PLAYLIST = 'https://media.example/a.m3u8'
const HEAD = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n'
const LOW_LATENCY = `${HEAD}#EXT-X-PART-INF:PART-TARGET=1\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n`

/** Names of what is chosen of each version, without `https://media.example/`. */
function choose(...texts: readonly string[]): string[][] {
  const choice = new MediaChoice(URL_OF_PLAYLIST)
  return texts.map((text) =>
    choice
      .choose(parseMediaPlaylist(text, URL_OF_PLAYLIST))
      .map(({ url, headers }) => [url.slice(22), headers?.['range']].filter(Boolean).join(' ')),
  )
}

/** @param maps  names of the init segments of one segment each */
const segments = (maps: readonly string[]) =>
  maps.map((map, index) => `#EXT-X-MAP:URI="${map}.mp4"\n#EXTINF:1,\n${index}.m4s\n`).join('')

t.test('an init segment is loaded once, also when another came between', async (t) => {
  t.strictSame(
    choose(HEAD + segments(['a', 'b', 'a']), HEAD + segments(['a', 'b', 'a', 'b', 'c'])),
    [
      ['a.mp4', '0.m4s', 'b.mp4', '1.m4s', '2.m4s'],
      ['3.m4s', 'c.mp4', '4.m4s'],
    ],
  )
})

t.test('an init segment is loaded again when four others came between', async (t) => {
  const maps = ['a', 'b', 'c', 'd', 'e', 'a']
  const versions = maps.map((_, index) => HEAD + segments(maps.slice(0, index + 1)))
  t.strictSame(choose(...versions).at(-1), ['a.mp4', '5.m4s'])
})

t.test('init segments that are byte ranges of one file are apart', async (t) => {
  const map = (range: string, index: number) =>
    `#EXT-X-MAP:URI="i.mp4",BYTERANGE="${range}"\n#EXTINF:1,\n${index}.m4s\n`
  t.strictSame(choose(HEAD + map('9@0', 0) + map('9@9', 1)), [
    ['i.mp4 bytes=0-8', '0.m4s', 'i.mp4 bytes=9-17', '1.m4s'],
  ])
})

t.test('of many parts at once the newest 20 are loaded, with their init segment', async (t) => {
  const parts = Array.from(
    { length: 30 },
    (_, index) => `#EXT-X-PART:DURATION=1,URI="p${index}.m4s"\n`,
  ).join('')
  const [, second] = choose(LOW_LATENCY, `${LOW_LATENCY}#EXT-X-MAP:URI="a.mp4"\n${parts}`)
  t.equal(second!.length, 21)
  t.strictSame([second![0], second![1], second!.at(-1)], ['a.mp4', 'p10.m4s', 'p29.m4s'])
})
