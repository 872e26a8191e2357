/**
 * What goes wrong in a cluster: each fault begins and ends by itself.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeProcess } from '../../test/peers/support/node-processes.ts'
import type { Cluster } from './cluster.ts'

export interface Fault {
  readonly name: string
  /** Whether viewers come through nginx; else each edge has a third of them. */
  readonly isBehindNginx?: boolean
  /** See `ClusterOptions`. */
  readonly isLinked?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Whether the encoder calls another node afterwards. */
  readonly movesEncoder?: boolean
  /** @param seconds  duration of a series */
  run(cluster: Cluster, seconds: number): Promise<void>
}

const STAND_STILL_MS = 10_000
const AWAY_MS = 60_000
/** Pauses of a series: before a process that was killed is started again, and after it. */
const DOWN_MS = 5000
const QUIET_MS = 15_000

export const FAULTS: readonly Fault[] = [
  {
    name: 'owner-killed',
    movesEncoder: true,
    run: async (cluster) => (await cluster.owner()).program.kill('SIGKILL'),
  },
  {
    name: 'owner-killed-backup',
    env: { CLUSTER_BACKUP: 'true' },
    movesEncoder: true,
    run: async (cluster) => (await cluster.owner()).program.kill('SIGKILL'),
  },
  {
    name: 'owner-closed',
    movesEncoder: true,
    run: async (cluster) => (await cluster.owner()).program.kill('SIGTERM'),
  },
  {
    name: 'edge-killed',
    isBehindNginx: true,
    run: async ({ edges }) => edges[0]!.program.kill('SIGKILL'),
  },
  {
    name: 'owner-stopped',
    movesEncoder: true,
    run: async (cluster) => standStill([await cluster.owner()], STAND_STILL_MS),
  },
  {
    name: 'redis-stopped',
    run: async ({ registry }) => {
      const { master, replica, sentinels } = registry!
      await standStill([master, replica, ...sentinels], AWAY_MS)
    },
  },
  {
    name: 'master-killed',
    run: async ({ registry }) => registry!.master.program.kill('SIGKILL'),
  },
  {
    name: 'owner-cut-off',
    isLinked: true,
    run: async ({ owner, ingest, links }) => {
      const link = links[ingest.indexOf(await owner())]!
      link.cut()
      await sleep(STAND_STILL_MS)
      link.mend()
    },
  },
  { name: 'series', run: runSeries },
]

/** One fault after the other, until the time is over; all that was killed is started again. */
async function runSeries(cluster: Cluster, seconds: number): Promise<void> {
  const { edges, registry } = cluster
  const killed = async (node: NodeProcess) => {
    node.program.kill('SIGKILL')
    await sleep(DOWN_MS)
    await node.restart()
  }
  const { master, replica, sentinels } = registry!
  const steps = [
    async () => killed(await cluster.owner()),
    async () => standStill([await cluster.owner()], STAND_STILL_MS),
    (turn: number) => killed(edges[turn % edges.length]!),
    () => standStill([master, replica, ...sentinels], STAND_STILL_MS),
  ]
  const endsAtMs = performance.now() + seconds * 1000
  for (let turn = 0; performance.now() < endsAtMs; turn++) {
    await steps[turn % steps.length]!(turn)
    await sleep(QUIET_MS)
  }
}

async function standStill(
  processes: readonly Pick<NodeProcess, 'program'>[],
  durationMs: number,
): Promise<void> {
  for (const { program } of processes) program.kill('SIGSTOP')
  await sleep(durationMs)
  for (const { program } of processes) program.kill('SIGCONT')
}
