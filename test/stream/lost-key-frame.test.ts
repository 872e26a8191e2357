import t from 'tap'
import { createStream, GopEncoder, listDurations } from './gops.ts'

const TAG = '#EXT-X-INDEPENDENT-SEGMENTS\n'

t.test('a stream recovers from a lost key frame (RFC 8216bis 4.4.2.1, 4.4.3.1)', async (t) => {
  const { stream, playlist, publish, pass } = createStream()
  const encoder = new GopEncoder()
  const publication = publish()
  const warned = () => stream.report().warnings.some(({ code }) => code === 'GOP_TOO_LONG')
  publication.push(encoder.encode([2, 2, 2, 2]))
  t.match(playlist(), TAG)
  t.notOk(warned())

  publication.push(encoder.encode([2], { lostKeys: true }))
  publication.push(encoder.encode([2, 2]))
  t.same(
    listDurations(playlist()),
    [2, 2.4, 1.6, 2],
    'cut at the limit, then at the next key frame',
  )
  t.notMatch(playlist(), TAG, 'a listed segment starts without a key frame')
  t.ok(warned())

  publication.push(encoder.encode([2, 2]))
  t.same(listDurations(playlist()), [1.6, 2, 2, 2])
  t.notMatch(playlist(), TAG)
  publication.push(encoder.encode([2]))
  t.same(listDurations(playlist()), [2, 2, 2, 2])
  t.match(playlist(), TAG, 'it has left the playlist')
  t.notMatch(stream.files.get('master.m3u8')!.chunks.join(''), TAG, 'players read it once')

  pass(29)
  t.ok(warned())
  pass(1)
  t.notOk(warned(), 'the warning ends after its cause')
})
