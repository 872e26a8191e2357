import t from 'tap'
import { MEDIA_OPTIONS } from '../../src/api/stream-options.ts'
import { completeSettings } from '../../src/config/complete-settings.ts'
import { mediaOptionsOf } from '../../src/hls/media-options.ts'
import { checkOptions, streamMedia, streamSettings } from '../../src/service/stream-defaults.ts'

function settingsOf(hls: object) {
  return streamSettings(
    completeSettings({ hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32), hls }),
  )
}

t.test('streams have both formats and parts by default, parts only with cmaf', async (t) => {
  t.match(settingsOf({}), { formats: ['ts', 'cmaf'], partSec: 0.2 })
  t.match(settingsOf({ formats: 'cmaf' }), { formats: ['cmaf'], partSec: 0.2 })
  t.match(settingsOf({ formats: 'ts' }), { formats: ['ts'], partSec: undefined })
  t.match(settingsOf({ lowLatency: false }), { formats: ['ts', 'cmaf'], partSec: undefined })
})

t.test('a stream with formats of its own has parts if cmaf is among them', async (t) => {
  const [ts, both] = [settingsOf({ formats: 'ts' }), settingsOf({})]
  const media = mediaOptionsOf(both)
  t.match(media, { segmentSec: 2, playlistSegments: 6 })
  t.strictSame(streamMedia(ts), { ...media, formats: ['ts'], partSec: undefined })
  t.strictSame(streamMedia(ts, { formats: ['cmaf'] }), {
    ...{ ...media, formats: ['cmaf'], partSec: 0.2 },
  })
  t.strictSame(streamMedia(both, { formats: ['ts'], segmentSec: undefined }), {
    ...{ ...media, formats: ['ts'], partSec: undefined },
  })
  t.strictSame(streamMedia(both, { segmentSec: 1, partMs: 250, playlistSegments: 5 }), {
    ...{ ...media, formats: ['ts', 'cmaf'], segmentSec: 1, playlistSegments: 5, partSec: 0.25 },
  })
})

t.test(
  'each media option of a stream replaces a setting, and is one of the packager',
  async (t) => {
    const settings = settingsOf({})
    const media = mediaOptionsOf(settings)
    for (const name of Object.keys(MEDIA_OPTIONS)) {
      t.ok(name in settings, `${name} is in hls of config/schema.ts`)
      t.ok(name.replace(/Ms$/, 'Sec') in media, `${name} is in hls/media-options.ts`)
    }
  },
)

t.test('part_ms is refused for a stream without parts, with the reason', async (t) => {
  const refusal = (hls: object, own: object) => {
    try {
      checkOptions({ partMs: 200, ...own }, settingsOf(hls))
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
