import t from 'tap'
import { completeOptions } from '../../src/config/options.ts'
import { checkMedia, streamMedia, streamSettings } from '../../src/service/stream-options.ts'

function settingsOf(hls: object) {
  return streamSettings(
    completeOptions({ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32), hls }),
  )
}

t.test('streams have both formats and parts by default, parts only with cmaf', async (t) => {
  t.match(settingsOf({}), { formats: ['ts', 'cmaf'], partSec: 0.2 })
  t.match(settingsOf({ formats: 'cmaf' }), { formats: ['cmaf'], partSec: 0.2 })
  t.match(settingsOf({ formats: 'ts' }), { formats: ['ts'], partSec: undefined })
  t.match(settingsOf({ lowLatency: false }), { formats: ['ts', 'cmaf'], partSec: undefined })
})

t.test('a stream with formats of its own has parts if cmaf is among them', async (t) => {
  const media = { segmentSec: 2, playlistSegments: 6 }
  const [ts, both] = [settingsOf({ formats: 'ts' }), settingsOf({})]
  t.strictSame(streamMedia(ts), { formats: ['ts'], ...media, partSec: undefined })
  t.strictSame(streamMedia(ts, { formats: ['cmaf'] }), {
    ...{ formats: ['cmaf'], ...media, partSec: 0.2 },
  })
  t.strictSame(streamMedia(both, { formats: ['ts'], segmentSec: undefined }), {
    ...{ formats: ['ts'], ...media, partSec: undefined },
  })
  t.strictSame(streamMedia(both, { segmentSec: 1, partMs: 250, playlistSegments: 5 }), {
    ...{ formats: ['ts', 'cmaf'], segmentSec: 1, playlistSegments: 5, partSec: 0.25 },
  })
})

t.test('part_ms is refused for a stream without parts, with the reason', async (t) => {
  const refusal = (hls: object, own: object) => {
    try {
      checkMedia({ partMs: 200, ...own }, settingsOf(hls))
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }
  const isTs = (name: string) => `part_ms must be absent: ${name} is ts, and only cmaf has parts`
  t.equal(refusal({}, {}), undefined)
  t.equal(refusal({ formats: 'ts' }, { formats: ['ts', 'cmaf'] }), undefined)
  t.equal(refusal({ formats: 'ts' }, {}), isTs('HLS_FORMATS'))
  t.equal(refusal({}, { formats: ['ts'] }), isTs('formats'))
  t.equal(refusal({ lowLatency: false }, {}), 'part_ms must be absent: HLS_LOW_LATENCY is false')
})
