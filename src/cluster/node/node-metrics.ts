/**
 * Table of the metrics of a node of a cluster.
 *
 * @module
 */
import type { BackupReport } from './backup/segment-backup.ts'
import type { OutboxReport } from './outbox/webhook-outbox.ts'
import type { MetricFamily } from '../../service/metrics/metric-family.ts'

/** Figures of a node at a scrape. */
interface ClusterReport {
  /** Id of the node. */
  readonly node: string
  readonly isRegistryReady: boolean
  readonly ownedStreams: number
  /** Streams with changes that the registry has not acknowledged. */
  readonly pendingStreams: number
  /** Undefined without `CLUSTER_BACKUP`. */
  readonly backup?: BackupReport | undefined
  readonly outbox: OutboxReport
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
  {
    name: 'millrace_cluster_backup_waiting_bytes',
    type: 'gauge',
    help: 'Size of the segments that wait to be written to the backup, or are being written.',
    read: ({ backup }) => backup?.waitingBytes,
  },
  {
    name: 'millrace_cluster_backup_bytes_total',
    type: 'counter',
    help: 'Size of the segments of the backup by what became of them: written, dropped (too many waited, or Redis was away), or read for streams that this node continues.',
    label: 'result',
    read: ({ backup }) =>
      backup && {
        written: backup.writtenBytes,
        dropped: backup.droppedBytes,
        read: backup.readBytes,
      },
  },
  {
    name: 'millrace_cluster_outbox_events',
    type: 'gauge',
    help: 'Undelivered webhooks: `kept` ones are delivered by another node if this one dies, `waiting` ones not yet.',
    label: 'state',
    read: ({ outbox: { kept, waiting } }) => ({ kept, waiting }),
  },
  {
    name: 'millrace_cluster_outbox_events_total',
    type: 'counter',
    help: 'Webhooks found in outboxes of nodes that are gone, not kept for lack of space, and sealed with an unknown secret.',
    label: 'result',
    read: ({ outbox: { found, unkept, unreadable } }) => ({ found, unkept, unreadable }),
  },
]
