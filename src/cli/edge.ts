/**
 * Command `edge`.
 *
 * @module
 */
import type { Flags } from '../config/environment.ts'
import { createEdgeServer } from '../cluster/edge/edge-server.ts'
import { reload, startProgram } from '../service/service-process.ts'
import { openLog, readConfig, stopSignal, throwAwaySecrets } from './terminal.ts'

export async function edge(flags: Flags): Promise<void> {
  // An edge verifies playback tokens alone.
  const secrets = throwAwaySecrets()
  const readAgain = () => readConfig(flags, (options) => ({ ...options, ...secrets, role: 'edge' }))
  const config = readAgain()
  const service = await startProgram(createEdgeServer, config, openLog(config, flags))
  process.on('SIGHUP', () => void reload(service, readAgain))
  await stopSignal()
  await service.server.close()
}
