#!/usr/bin/env node
/**
 * Command line: dispatches argv to one of the commands, whose modules are loaded when it is known: the service takes half a
 * second of CPU to load.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import { print, report, stopSignal } from './commands/terminal.ts'
import { parseFlags } from './config/environment.ts'
import { SETTINGS } from './config/settings.ts'
import { MillraceError } from './errors.ts'
import { INGEST_COMMAND, WORKER_COMMAND } from './supervisor/messages.ts'

const USAGE = `millrace receives live streams over SRT and serves them as HLS, from memory

  millrace serve               the service; needs HMAC_SECRET and JWT_SECRET
  millrace demo                the service with a built-in encoder and a page that plays it
  millrace edge                serves the streams of another Millrace, from memory of its own; needs EDGE_OF
  millrace check URL           what is wrong with a live HLS stream, by clause; --seconds 60, --json FILE, --junit FILE,
                               --record DIR, --replay DIR, --player apple|hlsjs|shaka|videojs|android
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

/** Exit code for mistakes of the user, as opposed to failures. */
const EXIT_USAGE = 2

async function main([command, ...args]: readonly string[]): Promise<void> {
  switch (command) {
    case 'serve':
      return (await import('./commands/serve.ts')).serve(args)
    case 'demo':
      return (await import('./commands/demo.ts')).demo(args)
    case 'edge':
      return (await import('./commands/edge.ts')).edge(args)
    case INGEST_COMMAND:
      return (await import('./supervisor/ingest-process.ts')).obeyAsIngest()
    case WORKER_COMMAND:
      return (await import('./supervisor/worker-process.ts')).obeyAsWorker()
    case 'check':
      return check(args)
    case 'publish':
      return publishFile(args)
    case 'sign':
      return (await import('./commands/signatures.ts')).printSignature(args)
    case 'sign-playback':
      return (await import('./commands/signatures.ts')).printPlaybackUrl(args)
    case 'webhook-secret':
      return (await import('./commands/signatures.ts')).printWebhookSecret(args)
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

async function check(args: readonly string[]): Promise<void> {
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
  const { publish } = await import('./publisher/publisher.ts')
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

async function version(): Promise<string> {
  const file = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { version: string }).version
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
