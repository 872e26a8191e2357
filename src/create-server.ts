/**
 * Composition of the service, for the library and the command line: alone in its process, or as the ingest process behind
 * worker processes; as a node of a cluster with `REDIS_URL`.
 *
 * @module
 */
import { completeSettings, configWarnings } from './config/complete-settings.ts'
import type { Config } from './config/schema.ts'
import { inOptionNames, inVariableNames, renameIn } from './config/option-names.ts'
import type { JoinCluster } from './service/cluster.ts'
import { MillraceError } from './errors.ts'
import { openLogger } from './logger.ts'
import { openServer, type ProgramOptions, type ServerOptions } from './service/open-server.ts'
import { Server, type ServerParts } from './service/server.ts'

/**
 * Starts the service for a program that uses the library: messages name options. If the start fails, nothing is left running.
 *
 * @throws {MillraceError} `CONFIG_INVALID`, or `ADDRESS_IN_USE` with the address
 */
export function createServer({ http, ...others }: ServerOptions): Promise<Server> {
  const isPortless = http === false
  const options = { ...others, http: isPortless ? undefined : http }
  return startAlone(options, { isPortless, nameSettings: inOptionNames })
}

/**
 * Starts the service for a command, whose messages name variables of the environment.
 *
 * @throws {MillraceError} see `createServer`
 */
export function createService(options: ProgramOptions): Promise<Server> {
  return startAlone(options)
}

/**
 * Starts the service with a Unix socket in place of `HTTP_HOST` and `HTTP_PORT`, for workers that serve this port.
 * `announce` is left to the caller, who knows when they do.
 *
 * @param parts.socketPath  in a directory that no other user can open
 * @throws {MillraceError} see `createServer`
 */
export function createIngest(options: ProgramOptions, parts: ServerParts): Promise<Server> {
  return start(options, parts)
}

async function startAlone(options: ProgramOptions, parts: ServerParts = {}): Promise<Server> {
  const server = await start(options, parts)
  server.announce()
  return server
}

async function start(options: ProgramOptions, parts: ServerParts): Promise<Server> {
  const { nameSettings = inVariableNames } = parts
  try {
    const config = completeSettings(options)
    refuse(config, parts)
    const logger = options.logger ?? openLogger(config)
    const warnings = parts.isSecondary === true ? [] : configWarnings(config)
    for (const warning of warnings) logger.warn(nameSettings(warning))
    const joinCluster =
      parts.joinCluster ?? (config.redisUrl === '' ? undefined : await loadCluster())
    return await openServer(new Server(config, logger, { ...parts, joinCluster }))
  } catch (error) {
    throw renameIn(error, nameSettings)
  }
}

/** @throws {MillraceError} `CONFIG_INVALID` for settings that do not go with where requests come from */
function refuse(config: Config, { socketPath, isPortless = false }: ServerParts): void {
  const { http, ingest } = config
  if (http.workers > 0 && socketPath === undefined)
    throw invalid(
      `HTTP_WORKERS is ${http.workers}: expected 0, since only \`millrace serve\` starts workers`,
    )
  if (ingest.workers > 1 && socketPath === undefined)
    throw invalid(
      `INGEST_WORKERS is ${ingest.workers}: expected 1, since only \`millrace serve\` starts workers`,
    )
  if (isPortless && config.public.url === '')
    throw invalid('PUBLIC_URL is not set and http is false: expected the URL of the application')
  if (isPortless && config.redisUrl !== '' && config.nodeUrl === '')
    throw invalid('NODE_URL is not set and http is false: expected a URL for the other nodes')
}

function invalid(message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', { message })
}

/** The client of Redis is loaded by nodes of a cluster alone. */
async function loadCluster(): Promise<JoinCluster> {
  const { ClusterMember } = await import('./cluster/node/member.ts')
  return (service) => new ClusterMember(service)
}
