/** Each rule on variants and renditions, broken once. */
import t from 'tap'
import { ORIGIN } from '../session.ts'
import { breaks, editMultivariant, keepsAll, load, recordPlaylists } from './fixture.ts'

const media = (group: string, name: string, rest = 'DEFAULT=NO,CHANNELS="2"', language = 'en') =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",LANGUAGE="${language}",${rest},URI="${group}-${name}.m3u8"\n`
const variant = (...attributes: string[]) =>
  `#EXT-X-STREAM-INF:${['BANDWIDTH=2', ...attributes].join()}\nmain.m3u8\n`
const withAudio = (group: string) => variant('CODECS="mp4a.40.2"', `AUDIO="${group}"`)
const video = (...attributes: string[]) =>
  variant('CODECS="avc1.42c00d"', 'RESOLUTION=2x2', 'FRAME-RATE=25.000', ...attributes)
const captions = (rest = 'LANGUAGE="en",INSTREAM-ID="CC1"') =>
  `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",${rest}\n`
const [none, some] = ['CLOSED-CAPTIONS=NONE', 'CLOSED-CAPTIONS="cc"']

const exchange = (text: string) =>
  load(`#EXTM3U\n${text}`, 8, { role: 'multivariant', url: `${ORIGIN}/video/studio/master.m3u8` })

t.test('finds nothing in groups, captions and ranges that variants agree on', async (t) => {
  const six = 'DEFAULT=NO,CHANNELS="6"'
  for (const text of [
    media('a', 'English') +
      media('a', 'French') +
      media('b', 'French') +
      media('b', 'English', six) +
      withAudio('a') +
      withAudio('b'),
    video() + video(),
    video(none) + video(none),
    captions() + video(some) + video(some),
    video('VIDEO-RANGE=PQ') + video('VIDEO-RANGE=SDR'),
  ]) {
    keepsAll(t, [exchange(text)], text)
  }
})

const english = media('a', 'English')
const both = withAudio('a') + withAudio('b')
const a = withAudio('a')
const CASES: readonly [id: string, ...texts: string[]][] = [
  ['VARIANT_WITHOUT_URI', video() + '#EXT-X-STREAM-INF:BANDWIDTH=1\n'],
  [
    'GROUP_UNDEFINED',
    video(some),
    english + a + withAudio('b'),
    english + a + video('AUDIO="cc"').replace('avc1', 'mp4a.40.2,avc1'),
  ],
  [
    'GROUP_MEMBERS_DIFFER',
    english + media('a', 'French') + media('b', 'English') + both,
    english + media('b', 'English', 'DEFAULT=YES,CHANNELS="2"') + both,
  ],
  ['NAME_REPEATED', english + english + a],
  [
    'DEFAULT_REPEATED',
    media('a', 'x', 'DEFAULT=YES,CHANNELS="2"') + media('a', 'y', 'DEFAULT=YES,CHANNELS="2"') + a,
  ],
  [
    'AUTOSELECT_AMBIGUOUS',
    media('a', 'x', 'AUTOSELECT=YES,CHANNELS="2"') +
      media('a', 'y', 'AUTOSELECT=YES,CHANNELS="2"') +
      a,
  ],
  [
    'LANGUAGE_MISSING',
    captions('INSTREAM-ID="CC1"') + video(some),
    english.replace('LANGUAGE="en",', '') + a,
  ],
  ['CHANNELS_MISSING', media('a', 'x', 'DEFAULT=NO') + a],
  ['GROUP_UNUSED', english + media('b', 'English') + a],
  [
    'MEDIA_CONTRADICTORY',
    captions('LANGUAGE="en"') + video(some),
    captions('LANGUAGE="en",INSTREAM-ID="CC5"') + video(some),
    captions('LANGUAGE="en",INSTREAM-ID="CC1",URI="a"') + video(some),
    media('a', 'x', 'DEFAULT=YES,AUTOSELECT=NO,CHANNELS="2"') + a,
    media('a', 'x', 'CHANNELS="2"', 'English (UK)') + a,
  ],
  [
    'CAPTIONS_NONE_MIXED',
    video(none) + video(),
    captions() + video(some) + video(none),
    captions() + video(none),
  ],
  ['ATTRIBUTE_TYPE', video('VIDEO-RANGE=HDR')],
  ['CODECS_WITHOUT_AUDIO', english + video('AUDIO="a"')],
  ['AVERAGE_OVER_PEAK', video('AVERAGE-BANDWIDTH=3')],
  ['CODECS_MISSING', variant()],
  ['RESOLUTION_MISSING', variant('CODECS="avc1.42c00d"', 'FRAME-RATE=25.000')],
  ['FRAME_RATE_MISSING', variant('CODECS="avc1.42c00d"', 'RESOLUTION=2x2')],
]

for (const [id, ...texts] of CASES) {
  t.test(`finds ${id} alone`, async (t) => {
    for (const text of texts) breaks(t, id, [exchange(text)], text)
  })
}

t.test('finds INDEPENDENT_SEGMENTS_TWICE alone', async (t) => {
  const session = await recordPlaylists({ lowLatency: false })
  const tag = '#EXT-X-INDEPENDENT-SEGMENTS\n'
  const twice = editMultivariant(session, (text) => text.replace('#EXTM3U\n', `#EXTM3U\n${tag}`))
  breaks(t, 'INDEPENDENT_SEGMENTS_TWICE', twice)
})
