/** Each rule on the text of playlists, broken once. */
import t from 'tap'
import { breaks, from, keepsAll, playlist, versions } from './fixture.ts'

const GOOD = playlist(from(0, 4))
const after = (line: string, tag: string) => (text: string) => text.replace(line, `${line}${tag}\n`)
const head = (tag: string) => after('#EXT-X-VERSION:3\n', tag)

const CASES: readonly [id: string, ...mutations: ((text: string) => string)[]][] = [
  ['NOT_EXTM3U', (text) => text.replace('#EXTM3U\n', '')],
  [
    'TARGETDURATION_MISSING',
    (text) => text.replace('#EXT-X-TARGETDURATION:2\n', ''),
    (text) => text.replace('DURATION:2\n', 'DURATION:2.5\n'),
  ],
  [
    'PLAYLIST_MIXED',
    head('#EXT-X-SESSION-DATA:DATA-ID="com.example.title",VALUE="a"'),
    (text) => `${text}#EXT-X-STREAM-INF:BANDWIDTH=1\n`,
  ],
  [
    'TAG_REPEATED',
    head('#EXT-X-VERSION:3'),
    head('#EXT-X-TARGETDURATION:2'),
    (text) => `${text}#EXT-X-ENDLIST\n#EXT-X-ENDLIST\n`,
  ],
  [
    'ATTRIBUTES_MALFORMED',
    head('#EXT-X-START:TIME-OFFSET=-6, PRECISE=YES'),
    head('#EXT-X-START:TIME-OFFSET=-6,TIME-OFFSET=-6'),
  ],
  ['ATTRIBUTE_MISSING', head('#EXT-X-START:PRECISE=YES')],
  [
    'ATTRIBUTE_TYPE',
    head('#EXT-X-START:TIME-OFFSET=-6,PRECISE=MAYBE'),
    head('#EXT-X-SERVER-CONTROL:HOLD-BACK="6"'),
  ],
  [
    'SEQUENCE_TAG_LATE',
    (text) => {
      const tag = '#EXT-X-DISCONTINUITY-SEQUENCE:0\n'
      return text.replace(tag, '').replace('a-0.ts\n', `a-0.ts\n${tag}`)
    },
  ],
  [
    'PLAYLIST_ENCODING',
    (text) => `\uFEFF${text}`,
    (text) => text.replace('2.000,', '2.000,caf\u0007e'),
    (text) => text.replace('2.000,', '2.000,\uFFFD'),
  ],
  [
    'VERSION_TOO_LOW',
    (text) => text.replace('#EXT-X-VERSION:3\n', ''),
    (text) => text.replace('#EXTINF', '#EXT-X-MAP:URI="init.mp4"\n#EXTINF'),
  ],
  ['VERSION_TOO_HIGH', (text) => text.replace('VERSION:3', 'VERSION:6')],
]

t.test('finds nothing in a good playlist, with LF or CRLF and comments', async (t) => {
  keepsAll(t, versions(GOOD))
  keepsAll(t, versions(GOOD.replaceAll('\n', '\r\n')))
  keepsAll(t, versions(`${GOOD}# a comment\n\n#EXT-X-OTHER:whatever, 1\n`))
})

for (const [id, ...mutations] of CASES) {
  t.test(`finds ${id} alone`, async (t) => {
    for (const mutate of mutations) breaks(t, id, versions(mutate(GOOD)))
  })
}
