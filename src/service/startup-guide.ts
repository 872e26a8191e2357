/**
 * What a reader at a terminal needs after the start: URLs, and how to start a stream.
 *
 * @module
 */
import { basename, relative } from 'node:path'
import type { Config } from '../config/schema.ts'
import { isWildcard } from '../config/setting-types.ts'
import { isReadable } from '../logger.ts'
import { PublicUrls } from './public-urls.ts'
import type { Server } from './server.ts'
import type { Service } from './service-process.ts'

/** Prints the guide where the log is for readers, and has the line `listening`. */
export function showGuide({ server, logger }: Service<Server>, config: Config): void {
  const [, program = 'millrace'] = process.argv
  if (!isReadable(config.logFormat) || !logger.isLevelEnabled('info')) return
  process.stdout.write(startupGuide(config, server, program))
}

/** @param program  path of the program */
export function startupGuide(
  config: Config,
  ports: Pick<Server, 'httpPort' | 'srtPort'>,
  program: string,
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
  const millrace = basename(program) === 'millrace' ? 'millrace' : `node ${relative('.', program)}`
  return [
    '',
    ...rows.map(([name, url]) => `  ${name.padEnd(11)}${url}`),
    '',
    '  Next: start a stream, in a terminal with the same HMAC_SECRET. The reply has srt_url for the encoder.',
    '',
    `  BODY='{"stream_id":"studio"}'`,
    `  curl ${api}/api/start-stream -H 'Content-Type: application/json' -d "$BODY" \\`,
    `       -H "LT-SIGNATURE: $(${millrace} sign "$BODY")"`,
    '\n',
  ].join('\n')
}

/** URL of a port that is not for viewers. */
function internalUrl({ apiHost, http, tls }: Config, port: number): string {
  const host = apiHost || http.host
  const name = isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${tls.cert === '' ? 'http' : 'https'}://${name}:${port}`
}
