/**
 * Reload of the settings of a running service: all of them, or none if one is not allowed.
 *
 * @module
 */
import { completeOptions, configWarnings, secretsOf } from '../config/options.ts'
import type { Options } from '../config/schema.ts'
import type { Logger } from '../logger.ts'
import type { Server } from './server.ts'

/** A running service, and what a reload changes beside it. */
export interface Service {
  readonly server: Server
  readonly logger: Logger
  /** All secrets so far, which no log line may contain. */
  readonly secrets: Set<string>
}

/** @param readOptions  reads environment, flags and files again; throws if it cannot */
export function reload({ server, logger, secrets }: Service, readOptions: () => Options): void {
  try {
    const config = completeOptions(readOptions())
    for (const secret of secretsOf(config)) secrets.add(secret)
    server.reload(config)
    logger.level = config.logLevel
    for (const warning of configWarnings(config)) logger.warn(warning)
    logger.info('settings reloaded')
  } catch (error) {
    const { message } = error as Error
    logger.error(`The settings cannot be reloaded: ${message}. The old ones stay in use.`)
  }
}
