/**
 * Nodes in a ring, in the order of their ids: each looks whether the next one is still there.
 *
 * @module
 */
import { isRefused } from '../../cluster/call-node.ts'
import type { Registry } from '../../cluster/registry/registry.ts'

/** Time limit of the answer of a node that may be gone. */
const PROBE_MS = 300

/**
 * Ends the lease of the next node if nobody listens at its URL: only while the lease holds are all its numbers known, so
 * that its playlists go on without a gap.
 *
 * @throws {MillraceError} `REGISTRY_UNAVAILABLE`
 */
export async function watchNext(
  registry: Pick<Registry, 'listNodes' | 'leaveNode'>,
  own: string,
): Promise<void> {
  const nodes = (await registry.listNodes()).filter(({ isLive }) => isLive)
  const inOrder = nodes.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  const next = inOrder.find(({ node }) => node > own) ?? inOrder[0]
  if (next === undefined || next.node === own) return
  try {
    await fetch(`${next.url}/health/live`, { signal: AbortSignal.timeout(PROBE_MS) })
  } catch (error) {
    if (isRefused(error)) await registry.leaveNode(next.node)
  }
}
