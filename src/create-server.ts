/**
 * Composition of the service, for the library and the command line: alone in its process, or as the ingest process behind
 * worker processes; as a node of a cluster with `REDIS_URL`.
 *
 * @module
 */
import { completeSettings, configWarnings } from './config/complete-settings.ts'
import type { JoinCluster } from './service/cluster.ts'
import { MillraceError } from './errors.ts'
import { openLogger } from './logger.ts'
import { openServer, type ServerOptions } from './service/open-server.ts'
import { Server } from './service/server.ts'

/**
 * Starts the service. If the start fails, nothing is left running.
 *
 * @throws {MillraceError} `CONFIG_INVALID`, or `ADDRESS_IN_USE` with the address
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const workers = options.http?.workers ?? 0
  if (workers > 0) {
    const message = `HTTP_WORKERS is ${workers}: expected 0, since only \`millrace serve\` starts workers`
    throw new MillraceError('CONFIG_INVALID', { message })
  }
  const server = await start(options)
  server.announce()
  return server
}

/**
 * Starts the service with a Unix socket in place of `HTTP_HOST` and `HTTP_PORT`, for workers that serve this port.
 * `announce` is left to the caller, who knows when they do.
 *
 * @param socketPath  in a directory that no other user can open
 * @throws {MillraceError} see `createServer`
 */
export function createIngest(options: ServerOptions, socketPath: string): Promise<Server> {
  return start(options, socketPath)
}

async function start(options: ServerOptions, socketPath?: string): Promise<Server> {
  const config = completeSettings(options)
  const logger = options.logger ?? openLogger(config)
  for (const warning of configWarnings(config)) logger.warn(warning)
  const joinCluster = config.redisUrl === '' ? undefined : await loadCluster()
  return openServer(new Server(config, logger, { socketPath, joinCluster }))
}

/** The client of Redis is loaded by nodes of a cluster alone. */
async function loadCluster(): Promise<JoinCluster> {
  const { ClusterMember } = await import('./cluster/node/member.ts')
  return (service) => new ClusterMember(service)
}
