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
import { isFree, replaceEarlier } from './gone-nodes.ts'

/** Time limit of a connection to the registry, below the time until the new process has a lease of its own. */
const READY_MS = 1000

/**
 * Ends its lease, unless it lives. Settles in any case: the node tries again once it has a lease of its own.
 *
 * @param isDead  whether the earlier process is known to have ended; default: if nobody listens at the URL of the node
 */
export async function endEarlierProcess(config: Config, isDead = false): Promise<void> {
  const { redisUrl, http, srt } = config
  const { node: url } = new PublicUrls(config, { httpPort: http.port, srtPort: srt.port })
  const redis = new Redis({ url: redisUrl })
  redis.connect()
  try {
    await redis.ready(READY_MS)
    const registry = new Registry({ redis, sequenceClock: SEQUENCE_CLOCK })
    if (isDead || (await isFree(url))) await replaceEarlier(registry, { node: '', url })
  } catch {
    // See above.
  } finally {
    await redis.close()
  }
}
