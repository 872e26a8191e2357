/**
 * Command `serve`.
 *
 * @module
 */
import { flagWarnings, parseFlags } from '../config/environment.ts'
import { reload } from '../service/reload.ts'
import { DRAIN_MS, growHeapFast, startProgram } from '../service/service-process.ts'
import { prepare, requiredOptions, stopSignal } from './terminal.ts'

export async function serve(args: readonly string[]): Promise<void> {
  const readOptions = () => requiredOptions(args)
  const { config, logger } = prepare(readOptions(), flagWarnings(parseFlags(args).values))
  if (config.role === 'edge') {
    const { edge } = await import('./edge.ts')
    return edge(args)
  }
  if (config.redisUrl !== '') {
    const { endEarlierProcess } = await import('../service/cluster/earlier-process.ts')
    void endEarlierProcess(config)
  }
  if (config.http.workers > 0) {
    const { serveWithWorkers } = await import('./workers.ts')
    return serveWithWorkers(config, logger, readOptions)
  }
  growHeapFast()
  // A supervisor, which carries no media, does without the memory of the service.
  const { createServer } = await import('../service/create-server.ts')
  const service = await startProgram(createServer, config, logger)
  process.on('SIGHUP', () => void reload(service, readOptions))
  process.on('SIGUSR2', () => void service.server.drain())
  await stopSignal()
  await service.server.close({ drainMs: DRAIN_MS })
}
