/**
 * Settings of a node of a cluster.
 *
 * @module
 */
import { Type } from 'typebox'
import { clusterSecret, httpUrl, redisUrl, redisUrls } from './setting-types.ts'

export const CLUSTER_SETTINGS = {
  role: Type.Enum(['all', 'ingest', 'edge'], {
    default: 'all',
    description:
      'part of this node in a cluster: `ingest` takes encoders and serves edges, `edge` serves viewers, `all` does both',
  }),
  redisUrl: redisUrl(
    'registry of a cluster: its nodes have the same, and the same `JWT_SECRET`; empty: no cluster',
  ),
  clusterBackup: Type.Boolean({
    default: false,
    description:
      'whether ingest nodes copy closed segments to Redis, where the node that continues a stream finds them',
  }),
  redisBackupUrls: redisUrls(
    'servers for `CLUSTER_BACKUP`, each with a share of the streams: all nodes have the same in the same order; empty: `REDIS_URL`',
  ),
  nodeUrl: httpUrl(
    'URL at which the other nodes of a cluster reach this one; empty: `http://PUBLIC_HOST:HTTP_PORT`',
  ),
  clusterSecret: clusterSecret(
    'signs calls between nodes, among them those of `EDGE_OF`: all nodes have the same; empty: calls are not signed',
  ),
}
