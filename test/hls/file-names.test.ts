import t from 'tap'
import {
  initUri,
  isAudioRendition,
  isCmafAudioPlaylistUri,
  isPlaylistUri,
  partUri,
  playlistUri,
  playlistUriOf,
  segmentUri,
  type CmafRendition,
  type RenditionName,
} from '../../src/hls/file-names.ts'

const NAMES: RenditionName[] = [
  'main',
  'video-2',
  'audio-2',
  'cmaf-video-1',
  'cmaf-video-2',
  'cmaf-audio-2',
]

t.test('names of both formats differ in every rendition', async (t) => {
  t.same(NAMES.map(playlistUri), [
    'playlist.m3u8',
    'video-2.m3u8',
    'audio-2.m3u8',
    'cmaf-video-1.m3u8',
    'cmaf-video-2.m3u8',
    'cmaf-audio-2.m3u8',
  ])
  t.same(
    NAMES.map((name) => segmentUri('e', name, 7)),
    ['e-7.ts', 'e-v2-7.ts', 'e-a2-7.ts', 'e-v1-7.m4s', 'e-v2-7.m4s', 'e-a2-7.m4s'],
  )
  t.equal(partUri('e', 'cmaf-video-1', 7), 'e-v1-p7.m4s')
  t.equal(initUri('e', 'cmaf-audio-1', '0f1e2d3c4b5a'), 'e-a1-0f1e2d3c4b5a.mp4')
})

t.test('audio renditions are those without video, in both formats', async (t) => {
  t.same(NAMES.filter(isAudioRendition), ['audio-2', 'cmaf-audio-2'])
})

t.test('a file names the playlist of its rendition', async (t) => {
  const cmaf: CmafRendition[] = ['cmaf-video-1', 'cmaf-video-12', 'cmaf-audio-2']
  for (const name of cmaf) {
    for (const uri of [
      segmentUri('e-v3', name, 7),
      partUri('e-v3', name, 7),
      initUri('e-v3', name, '0f'),
    ])
      t.equal(playlistUriOf(uri), playlistUri(name), uri)
  }
  t.equal(playlistUriOf(segmentUri('e-v3', 'main', 7)), 'playlist.m3u8')
})

t.test('playlists, and those of CMAF audio', async (t) => {
  const uris = [...NAMES.map(playlistUri), segmentUri('e', 'main', 7)]
  t.same(
    uris.filter((uri) => !isPlaylistUri(uri)),
    ['e-7.ts'],
  )
  t.same(uris.filter(isCmafAudioPlaylistUri), ['cmaf-audio-2.m3u8'])
})
