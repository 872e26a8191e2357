import t from 'tap'
import { completeSettings } from '../../../src/config/complete-settings.ts'
import { workerConfig } from '../../../src/cluster/workers/worker-process.ts'

const SECRETS = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }

t.test('workers share the limits of HTTP, and have a quarter of the cache each', async (t) => {
  const http = { workers: 3, maxConnections: 1000, maxBufferedMib: 100 }
  const config = completeSettings({ ...SECRETS, http, cache: { maxMib: 400 } })
  t.match(workerConfig(config), {
    http: { maxConnections: 334, maxBufferedMib: 34 },
    cache: { maxMib: 100 },
  })
})

t.test('a share is never less than the settings allow', async (t) => {
  const http = { workers: 64, maxConnections: 16, maxBufferedMib: 16 }
  const config = completeSettings({ ...SECRETS, http, cache: { maxMib: 16 } })
  const own = workerConfig(config)
  t.match(own, { http: { maxConnections: 16, maxBufferedMib: 16 }, cache: { maxMib: 16 } })
  t.same(completeSettings(own), own)
})
