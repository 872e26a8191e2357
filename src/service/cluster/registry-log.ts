/**
 * Log lines of the connection to the registry: one for each change.
 *
 * @module
 */
import type { Redis } from '../../cluster/redis.ts'
import type { Logger } from '../../logger.ts'

export function logRegistry(redis: Redis, logger: Logger): void {
  redis.on('steady', () => logger.info('the registry of the cluster answers'))
  redis.on('lost', (reason) => {
    logger.warn({ reason }, 'the registry of the cluster does not answer')
  })
}
