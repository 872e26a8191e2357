import t from 'tap'
import { completeSettings } from '../../src/config/complete-settings.ts'
import type { GivenSettings } from '../../src/config/schema.ts'
import { apiUrl } from '../../src/service/public-urls.ts'

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
