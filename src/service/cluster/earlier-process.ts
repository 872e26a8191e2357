/**
 * Earlier process of this node, which was killed. All of its numbers are known only as long as its lease holds, for less
 * than 2 s, of which the service needs a good part to be loaded: meanwhile its lease is ended.
 *
 * @module
 */
import { Redis } from '../../cluster/redis.ts'
import { Registry } from '../../cluster/registry/registry.ts'
import type { Config } from '../../config/schema.ts'
import { SEQUENCE_CLOCK } from '../../stream/sequence-starts.ts'
import { PublicUrls } from '../public-urls.ts'
import { replaceEarlier } from './gone-nodes.ts'

/** Time limit of a connection to the registry: a lease. */
const READY_MS = 2000

/** Ends its lease, unless it lives. Settles in any case: the node tries again once it has a lease of its own. */
export async function endEarlierProcess(config: Config): Promise<void> {
  const { redisUrl, nodeUrl, http, srt } = config
  const url = nodeUrl || new PublicUrls(config, { httpPort: http.port, srtPort: srt.port }).node
  const redis = new Redis({ url: redisUrl })
  redis.connect()
  try {
    await redis.ready(READY_MS)
    const registry = new Registry({ redis, sequenceClock: SEQUENCE_CLOCK })
    await replaceEarlier(registry, { node: '', url })
  } catch {
    // See above.
  } finally {
    await redis.close()
  }
}
