import t from 'tap'
import { readPlaylist } from '../../../src/cluster/edge/origin-file.ts'
import { endOfMedia } from '../../../src/hls/playlist/playlist-format.ts'

const CMAF = `#EXTM3U
#EXT-X-VERSION:10
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12.0
#EXT-X-PART-INF:PART-TARGET=0.5
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-MAP:URI="e-v1-aaaaaaaaaaaa.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z
#EXTINF:2.00000,
e-v1-7.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="e-v1-bbbbbbbbbbbb.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:02.000Z
#EXT-X-PART:DURATION=0.50000,URI="e-v1-p1.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.50000,URI="e-v1-p2.m4s",GAP=YES
#EXTINF:1.00000,
e-v1-8.m4s
#EXT-X-PART:DURATION=0.50000,URI="e-v1-p3.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="e-v1-p4.m4s"
#EXT-X-RENDITION-REPORT:URI="cmaf-audio-1.m3u8",LAST-MSN=9,LAST-PART=0
`

t.test('reads parts, init segments and position of a CMAF playlist', async (t) => {
  t.strictSame(readPlaylist(CMAF), {
    targetDurationSec: 2,
    ended: false,
    skippable: true,
    position: {
      ...{ mediaSequence: 8, parts: 2, nextParts: 1, partTargetSec: 0.5 },
      ...{ hint: 'e-v1-p4.m4s', skippable: true },
    },
    parts: new Set(['e-v1-p1.m4s', 'e-v1-p3.m4s']),
    maps: new Set(['e-v1-aaaaaaaaaaaa.mp4', 'e-v1-bbbbbbbbbbbb.mp4']),
  })
  t.equal(endOfMedia(CMAF), Date.UTC(2026, 0, 1, 0, 0, 3, 500))
})

t.test('whole segments of transport stream are nothing to wait for', async (t) => {
  const text = '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ne-7.ts\n'
  t.match(readPlaylist(text), { targetDurationSec: 2, position: undefined })
  t.equal(readPlaylist(text).maps.size, 0)
})
