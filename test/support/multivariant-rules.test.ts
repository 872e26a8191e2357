/**
 * A checker that never complains proves nothing: each rule is broken once.
 */
import t from 'tap'
import { checkMultivariant } from './multivariant-rules.ts'

const media = (group: string, name: string, rest = 'DEFAULT=NO,CHANNELS="2"') =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",LANGUAGE="en",${rest},URI="${group}-${name}.m3u8"\n`
const variant = (group: string) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="a,b",AUDIO="${group}"\nmain.m3u8\n`
const rulesBroken = (text: string, mediaPlaylists: string[] = []) =>
  checkMultivariant(text, mediaPlaylists).map((broken) => broken.split(':')[0])

t.test('accepts groups with the same members, whatever their channels and URIs', async (t) => {
  const text = `#EXTM3U\n${media('a', 'English')}${media('a', 'French')}${media('b', 'French')}${media('b', 'English', 'DEFAULT=NO,CHANNELS="6"')}${variant('a')}${variant('b')}`
  t.same(rulesBroken(text), [])
})

t.test('names the rule that a multivariant playlist breaks', async (t) => {
  const english = media('a', 'English')
  const cases: [rule: string, text: string][] = [
    ['4.4.6.1.1', english + media('a', 'French') + media('b', 'English')],
    ['4.4.6.1.1', english + media('b', 'English', 'DEFAULT=YES')],
    ['4.4.6.1.1', english + english],
    ['4.4.6.1.1', media('a', 'x', 'DEFAULT=YES') + media('a', 'y', 'DEFAULT=YES')],
    ['4.4.6.1.1', media('a', 'x', 'AUTOSELECT=YES') + media('a', 'y', 'AUTOSELECT=YES')],
  ]
  for (const [rule, text] of cases) {
    t.same(rulesBroken(text + variant('a') + variant('b')), [rule], text)
  }
  t.same(rulesBroken(english + variant('b')), ['4.4.6.2'])
})

const captions = (rest = 'LANGUAGE="en",INSTREAM-ID="CC1"') =>
  `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",${rest}\n`
const video = (...attributes: string[]) =>
  `#EXT-X-STREAM-INF:${['BANDWIDTH=1', 'RESOLUTION=2x2', ...attributes].join()}\nmain.m3u8\n`
const [none, some] = ['CLOSED-CAPTIONS=NONE', 'CLOSED-CAPTIONS="cc"']

t.test('accepts captions and dynamic ranges that all variants agree on', async (t) => {
  for (const text of [
    video() + video(),
    video(none) + video(none),
    captions() + video(some) + video(some),
    video('VIDEO-RANGE=PQ') + video('VIDEO-RANGE=SDR'),
    video('VIDEO-RANGE=SDR') + video(),
  ]) {
    t.same(rulesBroken(text), [], text)
  }
})

t.test('names the rule about captions or dynamic range that variants break', async (t) => {
  const cases: [rule: string, text: string][] = [
    ['4.4.6.1', captions('INSTREAM-ID="CC1"') + video(some)],
    ['4.4.6.1', captions('LANGUAGE="en"') + video(some)],
    ['4.4.6.1', captions('LANGUAGE="en",INSTREAM-ID="CC5"') + video(some)],
    ['4.4.6.1', captions('LANGUAGE="en",INSTREAM-ID="CC1",URI="a"') + video(some)],
    ['4.4.6.2', video(none) + video()],
    ['4.4.6.2', captions() + video(some) + video(none)],
    ['4.4.6.2', captions() + video(none)],
    ['4.4.6.2', video(some)],
    ['4.4.6.2', video('VIDEO-RANGE=HDR') + video('VIDEO-RANGE=SDR')],
    ['4.4.6.2', video('VIDEO-RANGE=HLG') + video()],
  ]
  for (const [rule, text] of cases) t.same(rulesBroken(text), [rule], text)
})

t.test('names INDEPENDENT-SEGMENTS that one media playlist does not keep', async (t) => {
  const tag = '#EXT-X-INDEPENDENT-SEGMENTS\n'
  t.same(rulesBroken(tag, [tag, tag]), [])
  t.same(rulesBroken(tag, [tag, '#EXTM3U\n']), ['4.4.2.1'])
})
