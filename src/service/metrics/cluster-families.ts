/**
 * Table of the metrics of a node of a cluster.
 *
 * @module
 */
import type { MetricFamily } from './metric-family.ts'

/** Figures of a node at a scrape. */
export interface ClusterReport {
  /** Id of the node. */
  readonly node: string
  readonly isRegistryReady: boolean
  readonly ownedStreams: number
  /** Streams with changes that the registry has not acknowledged. */
  readonly pendingStreams: number
}

export const CLUSTER_FAMILIES: readonly MetricFamily<ClusterReport>[] = [
  {
    name: 'millrace_cluster_node_info',
    type: 'gauge',
    help: 'Always 1; the label is the id of the node, which the records of its streams have in `node`.',
    label: 'node',
    read: ({ node }) => ({ [node]: 1 }),
  },
  {
    name: 'millrace_cluster_registry_ready',
    type: 'gauge',
    help: 'Whether the registry of the cluster answers.',
    read: ({ isRegistryReady }) => Number(isRegistryReady),
  },
  {
    name: 'millrace_cluster_owned_streams',
    type: 'gauge',
    help: 'Running streams that the node owns.',
    read: ({ ownedStreams }) => ownedStreams,
  },
  {
    name: 'millrace_cluster_pending_streams',
    type: 'gauge',
    help: 'Streams with changes that the registry has not acknowledged.',
    read: ({ pendingStreams }) => pendingStreams,
  },
]
