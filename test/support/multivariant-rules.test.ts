/**
 * A checker that never complains proves nothing: each rule is broken once.
 */
import t from 'tap'
import { checkMultivariant } from './multivariant-rules.ts'

const media = (group: string, name: string, rest = 'DEFAULT=NO,CHANNELS="2"') =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",${rest},URI="${group}-${name}.m3u8"\n`
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
  ]
  for (const [rule, text] of cases) {
    t.same(rulesBroken(text + variant('a') + variant('b')), [rule], text)
  }
  t.same(rulesBroken(english + variant('b')), ['4.4.6.2'])
})

t.test('names INDEPENDENT-SEGMENTS that one media playlist does not keep', async (t) => {
  const tag = '#EXT-X-INDEPENDENT-SEGMENTS\n'
  t.same(rulesBroken(tag, [tag, tag]), [])
  t.same(rulesBroken(tag, [tag, '#EXTM3U\n']), ['4.4.2.1'])
})
