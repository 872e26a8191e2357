#!/usr/bin/env node
/**
 * Command line: dispatches argv and environment to one of the commands below.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { Check } from 'typebox/value'
import { signPlaybackToken } from './auth/playback-token.ts'
import { sign } from './auth/signature.ts'
import { formatWebhookSecret, webhookKeys } from './auth/standard-webhooks.ts'
import { machineClock } from './clock.ts'
import { StreamId } from './contract/schema.ts'
import { flagWarnings, parseFlags, readOptions } from './config/environment.ts'
import { completeOptions, secretsOf } from './config/options.ts'
import type { Options } from './config/schema.ts'
import { SETTINGS } from './config/settings.ts'
import { parseSecrets } from './config/setting-types.ts'
import { MillraceError } from './errors.ts'
import { exitOnFatalErrors } from './service/fatal-errors.ts'
import { createLogger } from './logger.ts'
import { publish } from './publisher/publisher.ts'
import { reload, type Service } from './service/reload.ts'
import { createServer } from './service/server.ts'

const USAGE = `millrace receives live streams over SRT and serves them as HLS, from memory

  millrace serve               the service; needs HMAC_SECRET and JWT_SECRET
  millrace demo                the service with a built-in encoder and a page that plays it
  millrace check URL           what is wrong with a live HLS stream, by clause; --seconds 60, --json FILE, --junit FILE,
                               --record DIR, --replay DIR, --player apple|hlsjs|android
  millrace publish FILE URL    publishes an MPEG-TS file in real time to an SRT URL; --loop repeats it
  millrace sign [BODY]         LT-SIGNATURE of a request body, given or from standard input
  millrace sign-playback ID    a playlist URL with a playback token for a stream; needs PLAYBACK_SECRET; --ttl 14400 seconds,
                               --address IP of the only viewer
  millrace webhook-secret      the key of webhooks for the libraries of receivers, whsec_…
  millrace keygen              a random secret for HMAC_SECRET or JWT_SECRET

Settings come from flags or from the environment; flags win:
${SETTINGS.map(({ env, flag }) => `  --${flag.padEnd(24)} ${env}`).join('\n')}

A secret, or the log level, may be in a file: HMAC_SECRET_FILE is the path of the file with HMAC_SECRET, and so on.
`

/** Time for which playlists stay available after their ENDLIST, so that players load it. */
const DRAIN_MS = 2500

/** Default lifetime of a playback token. */
const PLAYBACK_TTL_SEC = 4 * 60 * 60

/** Exit code for mistakes of the user, as opposed to failures. */
const EXIT_USAGE = 2

async function main([command, ...args]: readonly string[]): Promise<void> {
  switch (command) {
    case 'serve':
      return serve(args)
    case 'demo':
      return demo(args)
    case 'check':
      return check(args)
    case 'publish':
      return publishFile(args)
    case 'sign':
      return printSignature(args)
    case 'sign-playback':
      return printPlaybackUrl(args)
    case 'webhook-secret':
      return printWebhookSecret(args)
    case 'keygen':
      return print(randomBytes(32).toString('hex'))
    case '--version':
    case '-v':
      return print(await version())
    case 'help':
    case '--help':
    case '-h':
      return print(USAGE)
    default:
      throw new MillraceError('USAGE', {
        message: `${command === undefined ? 'no command' : `unknown command "${command}"`}\n\n${USAGE}`,
      })
  }
}

async function serve(args: readonly string[]): Promise<void> {
  const service = await startServer(requiredOptions(args), flagWarnings(parseFlags(args).values))
  const { server } = service
  process.on('SIGHUP', () => reload(service, () => requiredOptions(args)))
  await stopSignal()
  await server.close({ drainMs: DRAIN_MS })
}

/**
 * Starts the service for a command; from then on, an uncaught error ends the process.
 *
 * @param warnings  logged first
 */
async function startServer(options: Options, warnings: readonly string[] = []): Promise<Service> {
  // V8 counts datagrams, which die young, towards the limit at which it marks the whole heap. At 60 streams of 5 Mbit/s:
  // 10 collections per minute instead of 70, 21.2 µs of CPU per packet instead of 22.7, and 27 MB more memory.
  setFlagsFromString('--heap-growing-percent=300')
  const config = completeOptions(options)
  const logger = createLogger(config.logLevel)
  for (const warning of warnings) logger.warn(warning)
  const server = await createServer({ ...config, logger })
  const secrets = new Set(secretsOf(config))
  exitOnFatalErrors({ logger, secrets, abandon: () => server.abandon() })
  return { server, logger, secrets }
}

async function demo(args: readonly string[]): Promise<void> {
  const options = readOptions(process.env, parseFlags(args).values, readText)
  const { server } = await createDemoServer(options)
  const { streamKey } = await server.startStream({ streamId: 'demo' })
  const passphrase = options.srt?.passphrase ?? ''
  const secured = passphrase === '' ? '' : `&passphrase=${encodeURIComponent(passphrase)}`
  const stop = new AbortController()
  const encoder = publish({
    file: new URL('../fixtures/demo.mpegts', import.meta.url),
    url: `srt://127.0.0.1:${server.srtPort}?streamid=${streamKey}${secured}`,
    loop: true,
    signal: stop.signal,
  })
  const isHttps = (options.tls?.cert ?? '') !== ''
  print(
    `\n  Watch the demo:  ${isHttps ? 'https' : 'http'}://127.0.0.1:${server.httpPort}/watch/demo\n  Stop it:         Ctrl-C\n`,
  )
  await Promise.race([stopSignal(), encoder])
  stop.abort()
  await encoder
  await server.close()
}

/** Starts on any free HTTP port if the default port is taken; a port that the user set is never replaced. */
async function createDemoServer({ http, srt, ...options }: Partial<Options>): Promise<Service> {
  const start = (httpPort: number, srtPort: number) =>
    startServer({
      ...options,
      hmacSecret: randomBytes(32).toString('hex'),
      jwtSecret: randomBytes(32).toString('hex'),
      http: { host: '127.0.0.1', ...http, port: httpPort },
      srt: { host: '127.0.0.1', ...srt, port: srtPort },
      logLevel: options.logLevel ?? 'warn',
    })
  try {
    return await start(http?.port ?? 8080, srt?.port ?? 0)
  } catch (error) {
    const isTaken = error instanceof MillraceError && error.code === 'ADDRESS_IN_USE'
    if (!isTaken || http?.port !== undefined) throw error
    return start(0, srt?.port ?? 0)
  }
}

async function check(args: readonly string[]): Promise<void> {
  // The service does without these modules and their dependency.
  const { runCheck } = await import('./check/command.ts')
  const stop = new AbortController()
  void stopSignal().then(() => stop.abort())
  process.exitCode = await runCheck(args, process, stop.signal)
}

async function publishFile(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseFlags(args, { loop: { type: 'boolean' } })
  const [file, url] = positionals
  if (file === undefined || url === undefined || positionals.length > 2) {
    throw new MillraceError('USAGE', { message: 'expected: millrace publish FILE URL [--loop]' })
  }
  const stop = new AbortController()
  void stopSignal().then(() => stop.abort())
  await publish({
    file,
    url,
    loop: values['loop'] !== undefined,
    signal: stop.signal,
    onEvent: report,
  })
}

async function printSignature(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseFlags(args)
  flagWarnings(values).forEach(report)
  const { hmacSecret } = readOptions(process.env, values, readText)
  if (hmacSecret === undefined) {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'HMAC_SECRET is not set: expected the secret that signs the body',
    })
  }
  const [body] = positionals
  print(sign(Buffer.from(body ?? (await text(process.stdin))), parseSecrets(hmacSecret)[0]))
}

function printPlaybackUrl(args: readonly string[]): void {
  const { values, positionals } = parseFlags(args, {
    ttl: { type: 'string' },
    address: { type: 'string' },
  })
  flagWarnings(values).forEach(report)
  const { ttl = String(PLAYBACK_TTL_SEC), address } = values
  const [streamId = '', ...others] = positionals
  const isForm = Check(StreamId, streamId) && others.length === 0 && /^[1-9]\d{0,9}$/.test(ttl)
  if (!isForm || (address !== undefined && isIP(address) === 0)) {
    throw new MillraceError('USAGE', {
      message: 'expected: millrace sign-playback STREAM_ID [--ttl SECONDS] [--address IP]',
    })
  }
  const { playbackSecret = '', public: base } = readOptions(process.env, values, readText)
  if (playbackSecret === '') {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'PLAYBACK_SECRET is not set: expected the secret that signs playback tokens',
    })
  }
  const token = signPlaybackToken({
    streamId,
    secret: parseSecrets(playbackSecret)[0],
    expiresAt: new Date(machineClock.wallMs() + Number(ttl) * 1000),
    ...(address !== undefined && { address }),
  })
  print(`${(base?.url ?? '').replace(/\/+$/, '')}/t/${token}/video/${streamId}/playlist.m3u8`)
}

function printWebhookSecret(args: readonly string[]): void {
  const { webhook, hmacSecret } = completeOptions(requiredOptions(args))
  const [newest] = webhookKeys(webhook.secret, parseSecrets(hmacSecret))
  print(formatWebhookSecret(newest))
}

function requiredOptions(args: readonly string[]): Options {
  // `completeOptions` rejects missing secrets; its message names the command that makes them.
  return readOptions(process.env, parseFlags(args).values, readText) as Options
}

function readText(path: string): string {
  return readFileSync(path, 'utf8')
}

/** Resolves at the first SIGINT or SIGTERM; the next one, of either kind, ends the process at once. */
function stopSignal(): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM'] as const
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of signals) process.off(signal, stop)
      resolve()
    }
    for (const signal of signals) process.on(signal, stop)
  })
}

async function version(): Promise<string> {
  const file = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { version: string }).version
}

function report(line: string): void {
  process.stderr.write(`${line}\n`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Whether the error is an invalid argument, setting or media file. */
function isMistake(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false
  const code = String(error.code)
  return (
    ['USAGE', 'CONFIG_INVALID', 'MEDIA_INVALID', 'RECORD_INVALID'].includes(code) ||
    code.startsWith('ERR_PARSE_ARGS')
  )
}

// A closed pipe must not end the service; pino handles errors of its own writes.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

main(process.argv.slice(2)).catch((error: unknown) => {
  const isExpected = error instanceof MillraceError || isMistake(error)
  const sentence = isExpected ? (error as Error).message : inspect(error)
  report(`millrace: ${sentence}`)
  process.exitCode = isMistake(error) ? EXIT_USAGE : 1
})
