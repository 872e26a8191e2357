import t from 'tap'
import type { ManifestHead } from '../../src/hls/manifest.ts'
import { encodeHead } from '../../src/service/registered-manifest.ts'

/** A section of SCTE-35 may have 4 KiB. */
const SECTION = Buffer.alloc(4096).toString('base64')

const head = (dateRanges: ManifestHead['dateRanges']): ManifestHead => ({
  media: { segmentSec: 2, playlistSegments: 6 },
  free: { media: 13, discontinuity: 4 },
  listedFrom: 7,
  renditions: [{ name: 'main', listed: true }],
  dateRanges,
})

const idsOf = (dateRanges: ManifestHead['dateRanges']) => {
  const { renditions } = encodeHead(head(dateRanges))
  return (renditions as ManifestHead).dateRanges.map(({ id }) => id)
}

t.test('of long date ranges, the registry gets the newest', async (t) => {
  const long = Array.from({ length: 64 }, (_, index) => {
    return { id: `splice-${index}`, startMs: index, scte35Out: SECTION, scte35In: SECTION }
  })
  t.strictSame(idsOf(long), ['splice-63'])
})

t.test('usual ones are all written', async (t) => {
  const usual = Array.from({ length: 64 }, (_, index) => {
    const scte35Out = Buffer.alloc(40).toString('base64')
    return { id: `splice-${index}`, startMs: 1e12 + index, durationSec: 30, scte35Out }
  })
  t.equal(idsOf(usual).length, 64)
})
