/**
 * Command `demo`.
 *
 * @module
 */
import { parseFlags } from '../config/environment.ts'
import type { Options } from '../config/schema.ts'
import { MillraceError } from '../errors.ts'
import { publish } from '../publisher/publisher.ts'
import { createServer } from '../service/create-server.ts'
import type { Service } from '../service/reload.ts'
import type { Server } from '../service/server.ts'
import { growHeapFast, startProgram } from '../service/service-process.ts'
import { givenOptions, prepare, print, stopSignal, throwAwaySecrets } from './terminal.ts'

export async function demo(args: readonly string[]): Promise<void> {
  growHeapFast()
  const options = givenOptions(parseFlags(args).values)
  const { server } = await createDemoServer(options)
  const { streamKey, masterUrl } = await server.startStream({ streamId: 'demo' })
  const passphrase = options.srt?.passphrase ?? ''
  const secured = passphrase === '' ? '' : `&passphrase=${encodeURIComponent(passphrase)}`
  const stop = new AbortController()
  const encoder = publish({
    file: new URL('../../fixtures/demo.mpegts', import.meta.url),
    url: `srt://127.0.0.1:${server.srtPort}?streamid=${streamKey}${secured}`,
    loop: true,
    signal: stop.signal,
  })
  const isHttps = (options.tls?.cert ?? '') !== ''
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
async function createDemoServer({
  http,
  srt,
  ...options
}: Partial<Options>): Promise<Service<Server>> {
  const startAt = (httpPort: number, srtPort: number) => {
    const { config, logger } = prepare({
      ...options,
      ...throwAwaySecrets(),
      http: { host: '127.0.0.1', ...http, port: httpPort },
      srt: { host: '127.0.0.1', ...srt, port: srtPort },
      logLevel: options.logLevel ?? 'warn',
    })
    return startProgram(createServer, config, logger)
  }
  try {
    return await startAt(http?.port ?? 8080, srt?.port ?? 0)
  } catch (error) {
    const isTaken = error instanceof MillraceError && error.code === 'ADDRESS_IN_USE'
    if (!isTaken || http?.port !== undefined) throw error
    return startAt(0, srt?.port ?? 0)
  }
}
