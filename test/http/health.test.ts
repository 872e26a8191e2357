import Fastify from 'fastify'
import t from 'tap'
import { health } from '../../src/http/health.ts'

t.test('live answers at any time, ready with the reasons against it', async (t) => {
  let reasons: string[] = []
  const app = Fastify()
  await app.register(health, { prefix: '/health', listUnreadyReasons: () => reasons })
  const get = async (path: string) => {
    const { statusCode, headers, payload } = await app.inject(path)
    t.equal(headers['cache-control'], 'no-store')
    return [statusCode, JSON.parse(payload)]
  }
  t.same(await get('/health/ready'), [200, { status: 'ready', reasons: [] }])
  reasons = ['draining']
  t.same(await get('/health/ready'), [503, { status: 'unready', reasons: ['draining'] }])
  t.same(await get('/health/live'), [200, { status: 'live' }])
})
