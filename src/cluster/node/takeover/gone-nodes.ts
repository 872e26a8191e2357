/**
 * Nodes that are gone although their leases still hold. Only while a lease holds are all numbers of its node known, so that
 * its playlists go on without a gap.
 *
 * @module
 */
import { machineTimers, type Timers } from '../../../timing/clock.ts'
import type { Config } from '../../../config/schema.ts'
import { PublicUrls } from '../../../service/public-urls.ts'
import { SEQUENCE_CLOCK } from '../../../stream/sequence-starts.ts'
import { Redis } from '../../registry/redis.ts'
import { Registry } from '../../registry/registry.ts'
import { isRefused } from '../call-node.ts'
import { RENEW_MS } from './node-lease.ts'
import type { RegisteredNode } from '../../registry/registered.ts'

type Nodes = Pick<Registry, 'listLiveNodes' | 'leaveNode'>

type Sleeper = Pick<Timers, 'sleep'>

/** Asks whether a node is there. @returns undefined if it answers; what `isRefused` takes, if nobody listens */
export type Probe = (url: string) => Promise<unknown>

/** Time limit of the response of a node that may be gone. */
const PROBE_MS = 300

/** Time in which a node that lives renews its lease. */
const RENEWED_MS = RENEW_MS + 100

/**
 * Looks whether the next node is there, in the order of ids, which are a ring.
 *
 * @throws {MillraceError} `REGISTRY_UNAVAILABLE`
 */
export async function watchNext(
  registry: Nodes,
  own: string,
  timers: Sleeper,
  probe: Probe = probeNode,
): Promise<void> {
  const nodes = await registry.listLiveNodes()
  const inOrder = nodes.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  const next = inOrder.find(({ node }) => node > own) ?? inOrder[0]
  if (next === undefined || next.node === own) return
  const failure = await probe(next.url)
  // One that ended during the call has closed its connection: only the next call is refused.
  const isGone = failure !== undefined && (isRefused(failure) || isRefused(await probe(next.url)))
  if (isGone) await endLease(registry, next, timers)
}

export function probeNode(url: string): Promise<unknown> {
  return fetch(`${url}/health/live`, { signal: AbortSignal.timeout(PROBE_MS) }).then(
    ({ body }) => body?.cancel(),
    (error: unknown) => error,
  )
}

/**
 * Ends the lease of a node at whose URL nobody listens, unless it is renewed: then the node lives behind a closed port.
 *
 * @param node  as it was listed just now
 * @returns whether the node has no lease any more
 * @throws {MillraceError} `REGISTRY_UNAVAILABLE`
 */
export async function endLease(
  registry: Pick<Registry, 'leaveNode'>,
  { node, deadlineMs, silentMs }: RegisteredNode,
  timers: Sleeper,
): Promise<boolean> {
  await timers.sleep(Math.max(0, RENEWED_MS - silentMs))
  return registry.leaveNode(node, { deadlineMs })
}

/**
 * Ends the lease of an earlier process at the URL of this node.
 *
 * @returns whether a node that lives has the same URL
 * @throws {MillraceError} `REGISTRY_UNAVAILABLE`
 */
export async function replaceEarlier(
  registry: Nodes,
  own: { readonly node: string; readonly url: string },
  timers: Sleeper,
): Promise<boolean> {
  const nodes = await registry.listLiveNodes()
  const others = nodes.filter(({ node, url }) => url === own.url && node !== own.node)
  const ended = await Promise.all(others.map((other) => endLease(registry, other, timers)))
  return ended.includes(false)
}

/** Time limit of a connection to the registry, below the time until the new process has a lease of its own. */
const READY_MS = 1000

/**
 * Ends the lease of an earlier process of this node, which was killed, unless it lives. All of its numbers are known only as
 * long as its lease holds, for less than 2 s, of which the service needs a good part to be loaded. Settles in any case: the
 * node tries again once it has a lease of its own.
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
    if (isDead || isRefused(await probeNode(url)))
      await replaceEarlier(registry, { node: '', url }, machineTimers)
  } catch {
    // The node tries again.
  } finally {
    await redis.close()
  }
}
