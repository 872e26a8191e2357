/**
 * What a reader at a terminal needs after the start: URLs, and how to start a stream.
 *
 * @module
 */
import { basename, relative } from 'node:path'
import type { Config } from '../config/schema.ts'
import { isReadable } from '../logger.ts'
import { apiUrl, internalUrl, PublicUrls } from './public-urls.ts'
import type { Server } from './server.ts'
import type { Service } from './service-process.ts'

/** Prints the guide where the log is for readers, and has the line `listening`. */
export function showGuide({ server, logger }: Service<Server>, config: Config): void {
  if (!isReadable(config.logFormat) || !logger.isLevelEnabled('info')) return
  process.stdout.write(startupGuide(config, server, process))
}

/** @param process  how the program was called: `argv` and, with the file of its settings, `execArgv` */
export function startupGuide(
  config: Config,
  ports: Pick<Server, 'httpPort' | 'srtPort'>,
  { argv, execArgv }: Pick<NodeJS.Process, 'argv' | 'execArgv'>,
): string {
  const { apiPort, admin, metrics, playbackSecret } = config
  const { http, srt } = new PublicUrls(config, ports)
  const api = apiPort === 0 ? http : internalUrl(config, apiPort)
  const viewer = `${http}${playbackSecret === '' ? '' : '/t/{token}'}`
  const metricsUrl = metrics.port === 0 ? api : internalUrl(config, metrics.port)
  const hasMetrics = metrics.port !== 0 || metrics.token !== ''
  const rows = [
    ['Encoders', srt],
    ['Players', `${viewer}/video/{stream_id}/master.m3u8`],
    ['Browsers', `${viewer}/watch/{stream_id}`],
    ['API', `${api}/api`],
    ...(admin.password === '' ? [] : [['Dashboard', `${api}/admin`]]),
    ...(hasMetrics ? [['Metrics', `${metricsUrl}/metrics`]] : []),
  ] as const
  const [, program = 'millrace'] = argv
  const files = execArgv.filter(
    (each, index) =>
      each.startsWith('--env-file') || /^--env-file[a-z-]*$/.test(execArgv[index - 1] ?? ''),
  )
  const millrace =
    basename(program) === 'millrace' ? ['millrace'] : ['node', ...files, relative('.', program)]
  // The port may be that of a flag, or any free one: neither is in the settings that `start` reads.
  const address = apiUrl({ ...config, http: { ...config.http, port: ports.httpPort } })
  const command = [...millrace, 'start', 'studio', '--url', address]
  return [
    '',
    ...rows.map(([name, url]) => `  ${name.padEnd(11)}${url}`),
    '',
    '  Next: start a stream, in a terminal with the same HMAC_SECRET. It prints what encoder and players need.',
    '',
    `  ${command.map(shellWord).join(' ')}`,
    '\n',
  ].join('\n')
}

function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
