/** Each rule on the text of playlists, and on the tags of segments and date ranges, broken once. */
import t from 'tap'
import { breaks, from, judge, keepsAll, load, playlist, PLAYLIST_URL, versions } from './fixture.ts'

const GOOD = playlist(from(0, 4))
const after = (line: string, tag: string) => (text: string) => text.replace(line, `${line}${tag}\n`)
const head = (tag: string) => after('#EXT-X-VERSION:3\n', tag)

const range = (attributes: string) => (text: string) => `${text}#EXT-X-DATERANGE:${attributes}\n`
const A = 'ID="a",START-DATE="2026-01-01T00:00:03.000Z"'
const before = (line: string, tags: string) => (text: string) =>
  text.replace(line, `${tags}${line}`)

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

const SEGMENT_CASES: readonly [id: string, ...mutations: ((text: string) => string)[]][] = [
  [
    'SECOND_OPINION',
    before('#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:04.000Z', '#EXT-X-DISCONTINUITY \n'),
    (text) => `${text}#EXT-X-ENDLIST\t\n`,
  ],
  [
    'EXTINF_NOT_ONE',
    (text) => text.replace('#EXTINF:2.000,\na-1', 'a-1'),
    (text) => text.replace('#EXTINF:2.000,\na-1', '#EXTINF:2.000,\n#EXTINF:2.000,\na-1'),
    (text) => text.replace('#EXTINF:2.000,\na-1', '#EXTINF:two,\na-1'),
  ],
  [
    'KEY_MALFORMED',
    before('#EXTINF:2.000,\na-1', '#EXT-X-KEY:METHOD=AES-128\n'),
    before('#EXTINF:2.000,\na-1', '#EXT-X-KEY:METHOD=NONE,URI="key"\n'),
    (text) =>
      before(
        '#EXTINF:2.000,\na-1',
        '#EXT-X-KEY:METHOD=AES-128,URI="key"\n#EXT-X-MAP:URI="init.mp4"\n',
      )(text).replace('VERSION:3', 'VERSION:6'),
  ],
  [
    'BYTERANGE_UNDEFINED',
    (text) =>
      before('#EXTINF:2.000,\na-1', '#EXT-X-BYTERANGE:188\n')(text).replace('ION:3', 'ION:4'),
  ],
  ['PROGRAM_DATE_TIME_INVALID', (text) => text.replace('2026-01-01T00:00:06.000Z', 'noon')],
  [
    'DATERANGE_WITHOUT_DATE',
    (text) => range(A)(text).replaceAll(/#EXT-X-PROGRAM-DATE-TIME.*\n/g, ''),
  ],
  [
    'DATERANGE_MALFORMED',
    range('ID="a"'),
    range('ID="a",START-DATE="tomorrow"'),
    range(`${A},END-DATE="2026-01-01T00:00:02.000Z"`),
    range(`${A},END-ON-NEXT=YES`),
    range(`${A},CLASS="ad",END-ON-NEXT=YES,DURATION=1`),
  ],
  ['DATERANGE_CONFLICT', (text) => range(`${A},DURATION=1`)(range(`${A},DURATION=2`)(text))],
  ['ATTRIBUTE_TYPE', range(`${A},SCTE35-OUT=FC30`), range(`${A},DURATION=-1`)],
  ['ATTRIBUTE_MISSING', range('START-DATE="2026-01-01T00:00:03.000Z"')],
  [
    'I_FRAMES_IN_PARTS',
    (text) =>
      text
        .replace('#EXTINF:2.000,\na-3', '#EXT-X-PART:DURATION=2.0,URI="p.ts",INDEPENDENT=YES\n$&')
        .replace(
          '#EXT-X-VERSION:3',
          '#EXT-X-VERSION:4\n#EXT-X-I-FRAMES-ONLY\n#EXT-X-PART-INF:PART-TARGET=2.0\n' +
            '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=6.0',
        )
        .concat('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="q.ts"\n'),
  ],
  [
    'PROGRAM_DATE_TIME_COARSE',
    (text) => text.replace('00:00:06.000Z', '00:00:06Z'),
    (text) => text.replaceAll('.000Z', '.000'),
  ],
]

t.test('finds nothing in a good playlist, with LF or CRLF and comments', async (t) => {
  keepsAll(t, versions(GOOD))
  keepsAll(t, versions(GOOD.replaceAll('\n', '\r\n')))
  keepsAll(t, versions(`${GOOD}# a comment\n\n#EXT-X-OTHER:whatever, 1\n`))
})

for (const [id, ...mutations] of [...CASES, ...SEGMENT_CASES]) {
  t.test(`finds ${id} alone`, async (t) => {
    for (const mutate of mutations) breaks(t, id, versions(mutate(GOOD)))
  })
}

t.test('finds nothing in keys, byte ranges and date ranges that are right', async (t) => {
  const key = '#EXT-X-KEY:METHOD=AES-128,URI="key",IV=0x00000000000000000000000000000001'
  keepsAll(t, versions(playlist([...from(0, 2), ...from(2, 2, { tags: [key] })])))
  const ranges = playlist(
    from(0, 3).map((line) => ({ ...line, tags: [`#EXT-X-BYTERANGE:188@${line.msn * 188}`] })),
    { 'EXT-X-VERSION': 4 },
  )
  keepsAll(t, versions(ranges.replaceAll(/a-\d/g, 'a')))
  keepsAll(t, versions(ranges.replaceAll(/a-\d/g, 'a').replaceAll(/@[1-9]\d*/g, '')))
  const scte = `${A},CLASS="ad",PLANNED-DURATION=0.5,SCTE35-OUT=0xFC30,X-COM-EXAMPLE="b"`
  keepsAll(t, versions(range(scte)(GOOD), range('ID="a",DURATION=0.6')(range(scte)(GOOD))))
})

t.test('finds BITRATE_WRONG alone, from the size of the segment', async (t) => {
  const text = playlist(from(0, 4)).replace('#EXTINF', '#EXT-X-BITRATE:100\n#EXTINF')
  const segment = (bytes: number) => [
    load(text, 8),
    load('x'.repeat(bytes), 8, {
      ...{ role: 'segment', playlistUrl: PLAYLIST_URL },
      url: new URL('a-1.ts', PLAYLIST_URL).href,
    }),
  ]
  const ids = (bytes: number) => judge(segment(bytes)).map(({ rule }) => rule.id)
  t.notOk(ids(25_000).includes('BITRATE_WRONG'))
  t.ok(ids(30_000).includes('BITRATE_WRONG'))
  t.ok(ids(20_000).includes('BITRATE_WRONG'))
})
