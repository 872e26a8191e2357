/**
 * Preloaded into a server: profiles the CPU of its process between two SIGUSR2.
 *
 * @module
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'

const SAMPLE_US = 250

const folder = process.env['MILLRACE_BENCH_PROFILES']!
let session: Session | undefined

process.on('SIGUSR2', () => {
  void (session === undefined ? start() : finish(session))
})

async function start(): Promise<void> {
  session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
  await session.post('Profiler.start')
}

async function finish(running: Session): Promise<void> {
  session = undefined
  const { profile } = await running.post('Profiler.stop')
  running.disconnect()
  mkdirSync(folder, { recursive: true })
  // Whoever waits for the file finds it whole.
  writeFileSync(`${folder}/${process.pid}.tmp`, JSON.stringify(profile))
  renameSync(`${folder}/${process.pid}.tmp`, `${folder}/${process.pid}.cpuprofile`)
}
