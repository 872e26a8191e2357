/**
 * Command `serve`.
 *
 * @module
 */
import type { Flags } from '../config/environment.ts'
import { DRAIN_MS, growHeapFast, reload, startProgram } from '../service/service-process.ts'
import { showGuide } from '../service/startup-guide.ts'
import { openLog, readConfig, stopSignal } from './terminal.ts'

export async function serve(flags: Flags): Promise<void> {
  const readAgain = () => readConfig(flags)
  const config = readAgain()
  if (config.role === 'edge') {
    const { edge } = await import('./edge.ts')
    return edge(flags)
  }
  const logger = openLog(config, flags)
  if (config.redisUrl !== '') {
    const { endEarlierProcess } = await import('../cluster/node/takeover/gone-nodes.ts')
    void endEarlierProcess(config)
  }
  if (config.http.workers > 0 || config.ingest.workers > 1) {
    const { serveWithWorkers } = await import('./workers.ts')
    return serveWithWorkers(config, logger, readAgain)
  }
  growHeapFast()
  // A supervisor, which carries no media, does without the memory of the service.
  const { createService } = await import('../create-server.ts')
  const service = await startProgram(createService, config, logger)
  showGuide(service, config)
  process.on('SIGHUP', () => void reload(service, readAgain))
  process.on('SIGUSR2', () => void service.server.drain())
  await stopSignal()
  await service.server.close({ drainMs: DRAIN_MS })
}
