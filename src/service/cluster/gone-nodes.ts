/**
 * Nodes that are gone although their leases still hold. Only while a lease holds are all numbers of its node known, so that
 * its playlists go on without a gap.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isRefused } from '../../cluster/call-node.ts'
import { RENEW_MS } from '../../cluster/node-lease.ts'
import type { RegisteredNode } from '../../cluster/registry/records.ts'
import type { Registry } from '../../cluster/registry/registry.ts'

type Nodes = Pick<Registry, 'listLiveNodes' | 'leaveNode'>

/** Time limit of the answer of a node that may be gone. */
const PROBE_MS = 300

/** Time in which a node that lives renews its lease. */
const RENEWED_MS = RENEW_MS + 100

/**
 * Looks whether the next node is there, in the order of ids, which are a ring.
 *
 * @throws {MillraceError} `REGISTRY_UNAVAILABLE`
 */
export async function watchNext(registry: Nodes, own: string): Promise<void> {
  const nodes = await registry.listLiveNodes()
  const inOrder = nodes.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  const next = inOrder.find(({ node }) => node > own) ?? inOrder[0]
  if (next === undefined || next.node === own) return
  const failure = await probe(next.url)
  // One that ended during the call has closed its connection: only the next call is refused.
  const isGone = failure !== undefined && (isRefused(failure) || (await isFree(next.url)))
  if (isGone) await endLease(registry, next)
}

/** Whether no process listens at a URL. */
export async function isFree(url: string): Promise<boolean> {
  return isRefused(await probe(url))
}

/** @returns undefined if the node answers */
function probe(url: string): Promise<unknown> {
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
): Promise<boolean> {
  await sleep(Math.max(0, RENEWED_MS - silentMs))
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
): Promise<boolean> {
  const nodes = await registry.listLiveNodes()
  const others = nodes.filter(({ node, url }) => url === own.url && node !== own.node)
  const ended = await Promise.all(others.map((other) => endLease(registry, other)))
  return ended.includes(false)
}
