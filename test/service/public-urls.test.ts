import t from 'tap'
import { completeSettings } from '../../src/config/complete-settings.ts'
import type { GivenSettings } from '../../src/config/schema.ts'
import { apiUrl, PublicUrls } from '../../src/service/public-urls.ts'

function urlWith(options: Partial<GivenSettings>): string {
  const secrets = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }
  return apiUrl(completeSettings({ ...secrets, public: { host: 'live.example' }, ...options }))
}

t.test('the API of a service on the same machine is at the address where it listens', async (t) => {
  t.equal(urlWith({}), 'http://127.0.0.1:8080')
  t.equal(urlWith({ http: { host: '::1', port: 9000 } }), 'http://[::1]:9000')
  t.equal(urlWith({ apiPort: 8081, apiHost: '10.0.0.5' }), 'http://10.0.0.5:8081')
  const metricsAlone = { apiHost: '10.0.0.5', metrics: { port: 9100 } }
  t.equal(urlWith(metricsAlone), 'http://127.0.0.1:8080')
})

t.test('with TLS it is at the public name, which the certificate has', async (t) => {
  const tls = { cert: 'cert.pem', key: 'key.pem' }
  t.equal(urlWith({ tls }), 'https://live.example:8080')
  t.equal(urlWith({ tls, public: { url: 'https://video.example/' } }), 'https://video.example')
})

t.test('players are told the address where the service listens for them', async (t) => {
  const urlsWith = (options: Partial<GivenSettings>) => {
    const secrets = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }
    const urls = new PublicUrls(completeSettings({ ...secrets, ...options }), {
      ...{ httpPort: 8080, srtPort: 10_080 },
    })
    return [urls.http, urls.srt]
  }
  const srt = { host: '192.0.2.7' }
  const [http, publicSrt] = ['http://192.0.2.7:8080', 'srt://192.0.2.7:10080']
  t.strictSame(urlsWith({ srt }), [http, publicSrt])
  t.strictSame(urlsWith({ srt, http: { host: '127.0.0.1' } }), ['http://127.0.0.1:8080', publicSrt])
  const named = { host: 'live.example' }
  t.strictSame(urlsWith({ srt, http: { host: '::1' }, public: named }), [
    ...['http://live.example:8080', 'srt://live.example:10080'],
  ])
})
