/**
 * Start of the service: alone in its process, or as the ingest process behind worker processes.
 *
 * @module
 */
import { completeOptions, configWarnings } from '../config/options.ts'
import type { ClusterMember } from './cluster/member.ts'
import { MillraceError } from '../errors.ts'
import type { Config } from '../config/schema.ts'
import { createLogger, type Logger } from '../logger.ts'
import { openServer, type ServerOptions } from './open-server.ts'
import { Server } from './server.ts'

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
  const config = completeOptions(options)
  const logger = options.logger ?? createLogger(config.logLevel)
  for (const warning of configWarnings(config)) logger.warn(warning)
  return openServer(new Server(config, logger, socketPath, await createMember(config, logger)))
}

/** The client of Redis is loaded by nodes of a cluster alone. */
async function createMember(config: Config, logger: Logger): Promise<ClusterMember | undefined> {
  if (config.redisUrl === '') return undefined
  const { ClusterMember } = await import('./cluster/member.ts')
  return new ClusterMember(config, logger)
}
