import t from 'tap'
import { deriveEncryption } from '../../src/auth/stream-key.ts'
import { decodeSettings } from '../../src/cluster/stream-settings.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import {
  applyTerms,
  digestOf,
  findEncryption,
  ownOptionsOf,
} from '../../src/service/registered-terms.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'

const clock = { nowUs: () => 5_000_000, wallMs: () => 1_000_000 }

function stream(): LiveStream {
  return new LiveStream('studio', {
    ...{ clock, cache: new SegmentCache({ maxBytes: 1e6 }), epoch: 'e', segmentSec: 2 },
    ...{ maxSegmentSec: 10, playlistSegments: 6, reconnectGraceSec: 1, lingerSec: 1 },
    maxBitrateBps: Infinity,
  })
}

const options = (...secrets: [string, ...string[]]) => ({
  clock,
  readJwtSecrets: () => secrets,
  webhookUrls: ['http://default/'],
})

t.test('a stream gets the terms that the registry has, and loses the others', async (t) => {
  const studio = stream()
  const settings = {
    ...{ webhookUrls: ['http://own/'], latencyMs: 300, allowFrom: ['10.0.0.0/8'] },
    ...{ playbackToken: false, bannedUntilMs: 1_002_000 },
  }
  applyTerms(studio, { settings }, options('secret'))
  t.strictSame(studio.webhookUrls, ['http://own/'])
  t.match(studio.terms, { latencyMs: 300, playbackToken: false, bannedUntilUs: 7_000_000 })
  t.equal(studio.terms.allowFrom?.check('10.1.1.1'), true)
  t.equal(studio.terms.allowFrom?.check('11.1.1.1'), false)
  applyTerms(studio, { settings: {} }, options('secret'))
  t.strictSame(studio.webhookUrls, ['http://default/'])
  t.strictSame(studio.terms, {})
  t.equal(studio.encryption, undefined)
})

t.test('the passphrase is that of the first start, whichever secret it is from', async (t) => {
  const of = (secret: string) => deriveEncryption({ streamId: 'studio', secret, sinceSec: 9 })
  const encryption = { sinceSec: 9, digest: digestOf(of('old')) }
  const studio = stream()
  applyTerms(studio, { settings: { encryption } }, options('new', 'old'))
  t.strictSame(studio.encryption, of('old'))
  applyTerms(studio, { settings: { encryption } }, options('new'))
  t.strictSame(studio.encryption, of('old'), 'a stream keeps it when the secret is gone')
  t.strictSame(findEncryption('studio', encryption, ['new', 'old']).secret, 'old')
  t.strictSame(findEncryption('studio', encryption, ['new']).encryption, of('new'))
})

t.test('a stream has its own options for the media beside its own terms', async (t) => {
  const media = { formats: ['cmaf' as const], segmentSec: 1, partMs: 250, playlistSegments: 5 }
  t.strictSame(ownOptionsOf({ media, latencyMs: 80 }), { ...media, latencyMs: 80 })
})

t.test('refuses settings that no node has written', async (t) => {
  t.throws(() => decodeSettings({ webhookUrls: 'http://x/' }), TypeError)
  t.throws(() => decodeSettings({ encryption: {} }), TypeError)
  t.strictSame(decodeSettings({ later: 1 }), { later: 1 })
})
