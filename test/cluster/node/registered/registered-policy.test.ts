import t from 'tap'
import { deriveEncryption } from '../../../../src/auth/stream-key.ts'
import { decodeOptions } from '../../../../src/cluster/registry/registered-options.ts'
import { SegmentCache } from '../../../../src/hls/store/segment-cache.ts'
import {
  applyPolicy,
  digestOf,
  findEncryption,
  sealUrls,
} from '../../../../src/cluster/node/registered/registered-policy.ts'
import { ownOptions } from '../../../../src/service/stream-defaults.ts'
import { LiveStream } from '../../../../src/stream/live-stream.ts'

const clock = { nowUs: () => 5_000_000, wallMs: () => 1_000_000 }

function stream(id = 'studio'): LiveStream {
  return new LiveStream(id, {
    ...{ clock, cache: new SegmentCache({ maxBytes: 1e6 }), epoch: 'e', segmentSec: 2 },
    ...{ maxSegmentSec: 10, playlistSegments: 6, reconnectGraceSec: 1, lingerSec: 1 },
    maxBitrateBps: Infinity,
  })
}

const settings = (...secrets: [string, ...string[]]) => ({
  clock,
  readJwtSecrets: () => secrets,
  readClusterSecrets: () => secrets.map((secret) => `cluster ${secret}`),
  webhookUrls: ['http://default/'],
})

t.test('a stream gets the policy that the registry has in place of its own', async (t) => {
  const studio = stream()
  const options = {
    ...{ webhookUrls: ['http://own/'], latencyMs: 300, allowFrom: ['10.0.0.0/8'] },
    ...{ playbackToken: false, bannedUntilMs: 1_002_000 },
    ...{ archive: true, dvrSec: 60 },
  }
  applyPolicy(studio, { options }, settings('secret'))
  t.strictSame(studio.webhookUrls, ['http://own/'])
  t.match(studio.policy, { latencyMs: 300, playbackToken: false, bannedUntilUs: 7_000_000 })
  t.match(studio.policy, { archive: true, dvrSec: 60, allowFrom: ['10.0.0.0/8'] })
  applyPolicy(studio, { options: {} }, settings('secret'))
  t.strictSame(studio.webhookUrls, ['http://default/'])
  t.strictSame(studio.policy, {})
  t.equal(studio.encryption, undefined)
})

t.test('the passphrase is that of the first start, whichever secret it is from', async (t) => {
  const of = (secret: string) => deriveEncryption({ streamId: 'studio', secret, sinceSec: 9 })
  const encryption = { sinceSec: 9, digest: digestOf(of('old')) }
  const studio = stream()
  applyPolicy(studio, { options: { encryption } }, settings('new', 'old'))
  t.strictSame(studio.encryption, of('old'))
  applyPolicy(studio, { options: { encryption } }, settings('new'))
  t.strictSame(studio.encryption, of('old'), 'a stream keeps it when the secret is gone')
  t.strictSame(findEncryption('studio', encryption, ['new', 'old']).secret, 'old')
  t.strictSame(findEncryption('studio', encryption, ['new']).encryption, of('new'))
})

t.test('a stream has its own options for the media beside its own policy', async (t) => {
  const media = { formats: ['cmaf' as const], segmentSec: 1, partMs: 250, playlistSegments: 5 }
  t.strictSame(ownOptions({ ...media, latencyMs: 80, playbackToken: true }), {
    ...media,
    latencyMs: 80,
  })
})

t.test('refuses options that no node has written', async (t) => {
  t.throws(() => decodeOptions({ webhookUrls: 'http://x/' }), TypeError)
  t.throws(() => decodeOptions({ encryption: {} }), TypeError)
  t.throws(() => decodeOptions({ latencyMs: '80' }), TypeError)
  t.throws(() => decodeOptions({ media: { formats: ['dash'] } }), TypeError)
  t.strictSame(decodeOptions({ later: 1 }), { later: 1 })
})

t.test('pull_url is sealed for its stream alone, by the newest secret', async (t) => {
  const url = 'srt://camera.example:9000?streamid=SECRET&passphrase=SECRETSECRET'
  const secrets = settings('new', 'old').readClusterSecrets()
  const pullUrl = sealUrls({ streamId: 'studio', pullUrl: url }, secrets).pullUrl!
  t.notMatch(Buffer.from(pullUrl, 'base64').toString('latin1'), /SECRET|camera/)
  const urlOf = (id: string, options: { pullUrl: string }, ...secrets: [string, ...string[]]) => {
    const each = stream(id)
    applyPolicy(each, { options }, settings(...secrets))
    return each.pullUrl
  }
  t.equal(urlOf('studio', { pullUrl }, 'new'), url)
  t.equal(urlOf('studio', { pullUrl }, 'newer', 'new'), url, 'while it is replaced')
  t.equal(urlOf('studio', { pullUrl }, 'newer'), undefined)
  t.equal(urlOf('other', { pullUrl }, 'new'), undefined, 'not under another stream')
  t.equal(urlOf('studio', { pullUrl: 'AAAA' }, 'new'), undefined, 'what no node has written')
  t.strictSame(sealUrls({ streamId: 'studio', pullUrl: '' }, []), { pullUrl: '' })
  t.equal(urlOf('studio', { pullUrl: '' }, 'new'), undefined)
})

t.test('push_urls are sealed alike', async (t) => {
  const urls = ['srt://a.example:9000?passphrase=SECRETSECRET', 'srt://b.example:9000']
  const secrets = settings('new').readClusterSecrets()
  const { pushUrls, ...others } = sealUrls({ streamId: 'studio', pushUrls: urls }, secrets)
  t.strictSame(others, {})
  t.notMatch(Buffer.from(pushUrls!, 'base64').toString('latin1'), /SECRET|example/)
  const studio = stream('studio')
  applyPolicy(studio, { options: { pushUrls } }, settings('new'))
  t.strictSame(studio.pushUrls, urls)
  applyPolicy(studio, { options: { pushUrls } }, settings('other'))
  t.strictSame(studio.pushUrls, [])
})
