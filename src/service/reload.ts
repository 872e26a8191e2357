/**
 * Reload of the settings of a running service: all of them, or none if one is not allowed.
 *
 * @module
 */
import { completeOptions, configWarnings, secretsOf } from '../config/options.ts'
import type { Config, Options } from '../config/schema.ts'
import type { Logger } from '../logger.ts'

/** A running service or edge, and what a reload changes beside it. */
export interface Service<Running extends Reloadable = Reloadable> {
  readonly server: Running
  readonly logger: Logger
  /** All secrets so far, which no log line may contain. */
  readonly secrets: Set<string>
}

export interface Reloadable {
  /** @throws {MillraceError} `CONFIG_INVALID`; nothing has changed then */
  reload(config: Config): void | Promise<void>
}

/** @param readOptions  reads environment, flags and files again; throws if it cannot */
export async function reload(service: Service, readOptions: () => Options): Promise<void> {
  const { logger } = service
  try {
    const config = completeOptions(readOptions())
    await replaceSettings(service, config)
    for (const warning of configWarnings(config)) logger.warn(warning)
    logger.info('settings reloaded')
  } catch (error) {
    const { message } = error as Error
    logger.error(`The settings cannot be reloaded: ${message}. The old ones stay in use.`)
  }
}

/** @throws {MillraceError} see `Reloadable` */
export async function replaceSettings(
  { server, logger, secrets }: Service,
  config: Config,
): Promise<void> {
  for (const secret of secretsOf(config)) secrets.add(secret)
  await server.reload(config)
  logger.level = config.logLevel
}
