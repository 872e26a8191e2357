/**
 * Command `demo`.
 *
 * @module
 */
import type { Flags } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import { MillraceError } from '../errors.ts'
import { publish } from './publisher/publisher.ts'
import { createService } from '../create-server.ts'
import { growHeapFast, startProgram } from '../service/service-process.ts'
import type { Server } from '../service/server.ts'
import { openLog, print, readConfig, stopSignal, throwAwaySecrets } from './terminal.ts'

export async function demo(flags: Flags): Promise<void> {
  growHeapFast()
  const { config, server } = await startDemoServer(flags)
  const { streamKey, masterUrl } = await server.startStream({ streamId: 'demo' })
  const { passphrase } = config.srt
  const secured = passphrase === '' ? '' : `&passphrase=${encodeURIComponent(passphrase)}`
  const stop = new AbortController()
  const encoder = publish({
    file: new URL('../../fixtures/demo.mpegts', import.meta.url),
    url: `srt://127.0.0.1:${server.srtPort}?streamid=${streamKey}${secured}`,
    loop: true,
    signal: stop.signal,
  })
  const isHttps = config.tls.cert !== ''
  const page = `${isHttps ? 'https' : 'http'}://127.0.0.1:${server.httpPort}/watch/demo`
  print(
    `\n  Watch the demo:  ${page}\n  In a player:     ${masterUrl}\n  Stop it:         Ctrl-C\n`,
  )
  await Promise.race([stopSignal(), encoder])
  stop.abort()
  await encoder
  await server.close()
}

/** Starts on any free HTTP port if the default port is taken; a port that the user set is never replaced. */
async function startDemoServer(flags: Flags): Promise<{ config: Config; server: Server }> {
  const configWith = (http: { port?: number }) =>
    readConfig(flags, (given) => ({
      ...given,
      ...throwAwaySecrets(),
      http: { host: '127.0.0.1', ...http, ...given.http },
      srt: { host: '127.0.0.1', port: 0, ...given.srt },
      logLevel: given.logLevel ?? 'warn',
    }))
  const config = configWith({})
  const logger = openLog(config, flags)
  try {
    return { config, ...(await startProgram(createService, config, logger)) }
  } catch (error) {
    if (!(error instanceof MillraceError && error.code === 'ADDRESS_IN_USE')) throw error
    return { config, ...(await startProgram(createService, configWith({ port: 0 }), logger)) }
  }
}
