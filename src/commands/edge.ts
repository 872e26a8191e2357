/**
 * Command `edge`.
 *
 * @module
 */
import { flagWarnings, parseFlags } from '../config/environment.ts'
import { createEdgeServer } from '../service/edge-server.ts'
import { reload } from '../service/reload.ts'
import { startProgram } from '../service/service-process.ts'
import { givenOptions, prepare, stopSignal, throwAwaySecrets } from './terminal.ts'

export async function edge(args: readonly string[]): Promise<void> {
  const { values } = parseFlags(args)
  // An edge verifies playback tokens alone.
  const secrets = throwAwaySecrets()
  const readOptions = () => ({ ...givenOptions(values), ...secrets })
  const { config, logger } = prepare(readOptions(), flagWarnings(values))
  const service = await startProgram(createEdgeServer, config, logger)
  process.on('SIGHUP', () => void reload(service, readOptions))
  await stopSignal()
  await service.server.close()
}
