/**
 * `serve` with `HTTP_WORKERS` or `INGEST_WORKERS`.
 *
 * @module
 */
import { secretsOf } from '../config/complete-settings.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../logger.ts'
import { exitOnFatalErrors } from '../service/fatal-errors.ts'
import { reload } from '../service/service-process.ts'
import { Supervisor } from '../cluster/workers/supervisor.ts'
import { stopSignal } from './terminal.ts'

/** @param readConfig  reads environment, flags and files again */
export async function serveWithWorkers(
  config: Config,
  logger: Logger,
  readConfig: () => Config,
): Promise<void> {
  const [, program = ''] = process.argv
  const supervisor = new Supervisor({ program, config, logger })
  const secrets = new Set(secretsOf(config))
  exitOnFatalErrors({ logger, secrets, abandon: () => supervisor.abandon() })
  process.on('SIGHUP', () => void reload({ server: supervisor, logger, secrets }, readConfig))
  process.on('SIGUSR2', () => supervisor.drain())
  const ending = Promise.race([stopSignal(), supervisor.failed])
  try {
    await Promise.race([supervisor.start(), ending])
    await ending
  } catch (error) {
    await supervisor.abandon()
    throw error
  }
  void killAtSignal(supervisor)
  await supervisor.stop()
}

/** Lets the next signal end all processes at once. */
async function killAtSignal(supervisor: Supervisor): Promise<void> {
  const signal = await stopSignal()
  supervisor.kill()
  process.kill(process.pid, signal)
}
