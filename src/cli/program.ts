/**
 * Commands of the program, with their options and help. Their modules are loaded when the command is known: the service
 * takes half a second of CPU to load.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { TObject } from 'typebox'
import { StartStreamBody, StopStreamBody } from '../api/requests.ts'
import { isStreamId, STREAM_ID_ALLOWED } from '../auth/stream-id.ts'
import { PLAYERS } from '../check/rules/rule.ts'
import { INGEST_COMMAND, WORKER_COMMAND } from '../cluster/workers/messages.ts'
import type { Flags } from '../config/environment.ts'
import { allowedValues, SETTINGS, type Setting } from '../config/setting-names.ts'
import { requestOptions } from './request-options.ts'
import { VERSION } from '../version.ts'
import { print, report, stopSignal } from './terminal.ts'

const ABOUT_SETTINGS = `
Each setting is also a variable of the environment: --http-port is HTTP_PORT. Flags win.
A secret, or the log level, may be in a file: HMAC_SECRET_FILE is the path of the file
with HMAC_SECRET, and so on.`

/**
 * @returns the program; `parseAsync` runs a command
 * @throws {CommanderError} from `parseAsync`, for mistakes (already printed), and after help and version with exit code 0
 */
export function createProgram(): Command {
  const program = new Command('millrace')
    .description('Receives live streams over SRT and serves them as HLS, from memory.')
    .version(VERSION, '-v, --version')
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({
      // A URL that is refused may hold a password.
      outputError: (text, write) =>
        write(text.replace(/^error: /, 'millrace: ').replace(/:\/\/[^/\s]*@/, '://…@')),
    })
    .showHelpAfterError('Add --help for options and an example.')

  service(program, 'serve')
    .description('the service; needs HMAC_SECRET and JWT_SECRET')
    .addHelpText(
      'after',
      example(
        'export HMAC_SECRET=$(millrace keygen) JWT_SECRET=$(millrace keygen)',
        'millrace serve --http-port 80',
      ),
    )
    .action(async (options: Flags) => (await import('./serve.ts')).serve(flagsOf(options)))

  service(program, 'demo')
    .description('the service with a built-in encoder, and a page that plays it')
    .addHelpText('after', example('millrace demo'))
    .action(async (options: Flags) => (await import('./demo.ts')).demo(flagsOf(options)))

  service(program, 'edge')
    .description('serves the streams of another Millrace, from memory of its own; needs EDGE_OF')
    .addHelpText('after', example('millrace edge --edge-of https://origin.example.org'))
    .action(async (options: Flags) => (await import('./edge.ts')).edge(flagsOf(options)))

  program
    .command('check')
    .description('what is wrong with a live HLS stream, by clause, and what players do')
    .argument('[url]', 'http or https URL of a playlist, or of a page /watch/{stream_id}')
    .option('--seconds <number>', 'duration of the check', parsePositive, 60)
    .addOption(
      new Option('--player <name>', 'player whose rules are checked')
        .choices([...PLAYERS, 'all'])
        .default('all'),
    )
    .option('--json <file>', 'writes the findings as JSON')
    .option('--junit <file>', 'writes the findings as JUnit XML')
    .addOption(
      new Option('--record <folder>', 'keeps all requests and responses').conflicts('replay'),
    )
    .option('--replay <folder>', 'checks a record again, in place of a URL')
    .addHelpText(
      'after',
      '\nExit status: 0 without a broken MUST rule, 1 with one, 2 if no playlist could be fetched.\n' +
        example('millrace check https://example.org/live/master.m3u8 --seconds 120'),
    )
    .action(async (url: string | undefined, options, command: Command) => {
      if ((url === undefined) === (options.replay === undefined)) {
        command.error('error: expected a URL, or --replay and a folder')
      }
      const { runCheck } = await import('../check/command.ts')
      process.exitCode = await runCheck({ url, ...options }, process, abortAtStop())
    })

  program
    .command('publish')
    .description('publishes an MPEG-TS file in real time to an SRT URL')
    .argument('<file>', 'MPEG transport stream')
    .argument('<url>', 'SRT URL with the stream key')
    .option('--loop', 'repeats the file')
    .addHelpText(
      'after',
      example("millrace publish clip.ts 'srt://127.0.0.1:10080?streamid=…' --loop"),
    )
    .action(async (file: string, url: string, { loop }: { loop?: boolean }) => {
      const { publish } = await import('./publisher/publisher.ts')
      await publish({ file, url, loop: loop === true, signal: abortAtStop(), onEvent: report })
    })

  apiCommand(program, 'start', StartStreamBody)
    .description('starts a stream of a running service: URLs for its encoder and its viewers')
    .argument('<stream-id>', 'id of the stream', parseStreamId)
    .addHelpText('after', `\ndocs/api.md#start-stream has what the options do.`)
    .addHelpText('after', example('millrace start studio --key-lifetime-sec 86400'))
    .action(async (streamId: string, options) =>
      (await import('./streams.ts')).start(streamId, options),
    )

  apiCommand(program, 'stop', StopStreamBody)
    .description('stops a stream of a running service')
    .argument('<stream-id>', 'id of the stream', parseStreamId)
    .addHelpText('after', example('millrace stop studio'))
    .action(async (streamId: string, options) =>
      (await import('./streams.ts')).stop(streamId, options),
    )

  apiCommand(program, 'status')
    .description('state of a stream, and what is wrong with it')
    .argument('<stream-id>', 'id of the stream', parseStreamId)
    .addHelpText('after', example('millrace status studio --json'))
    .action(async (streamId: string, options) =>
      (await import('./streams.ts')).status(streamId, options),
    )

  apiCommand(program, 'streams')
    .description('all streams of a running service')
    .option('--status <state>', 'READY, STREAMING, INTERRUPTED or STOPPED')
    .addHelpText('after', example('millrace streams --status STREAMING'))
    .action(async (options) => (await import('./streams.ts')).streams(options))

  withSettings(program.command('sign'), ['HMAC_SECRET'])
    .description('LT-SIGNATURE of a request body')
    .argument('[body]', 'default: read from standard input')
    .addHelpText('after', example(`millrace sign '{"stream_id":"studio"}'`))
    .action(async (body: string | undefined, options: Flags) =>
      (await import('./signatures.ts')).printSignature(body, flagsOf(options)),
    )

  withSettings(program.command('sign-playback'), ['PLAYBACK_SECRET', 'PUBLIC_URL'])
    .description('a playlist URL with a playback token for a stream; needs PLAYBACK_SECRET')
    .argument('<stream-id>', 'id of the stream', parseStreamId)
    .option('--ttl <seconds>', 'time until the token expires', parseTtl, 4 * 60 * 60)
    .option('--address <ip>', 'the only viewer; default: anyone with the URL', parseAddress)
    .addHelpText('after', example('millrace sign-playback studio --ttl 3600'))
    .action(async (streamId: string, options) =>
      (await import('./signatures.ts')).printPlaybackUrl(streamId, options, flagsOf(options)),
    )

  withSettings(program.command('webhook-secret'), ['HMAC_SECRET', 'JWT_SECRET', 'WEBHOOK_SECRET'])
    .description('the key of webhooks for the libraries of receivers, whsec_…')
    .addHelpText('after', example('millrace webhook-secret'))
    .action(async (options: Flags) =>
      (await import('./signatures.ts')).printWebhookSecret(flagsOf(options)),
    )

  program
    .command('keygen')
    .description('a random secret, for HMAC_SECRET, JWT_SECRET and others')
    .addHelpText('after', example('export HMAC_SECRET=$(millrace keygen)'))
    .action(() => print(randomBytes(32).toString('hex')))

  program
    .command(INGEST_COMMAND, { hidden: true })
    .action(async () =>
      (await import('../cluster/workers/ingest-process.ts')).runIngest(
        (await import('../create-server.ts')).createIngest,
      ),
    )
  program
    .command(WORKER_COMMAND, { hidden: true })
    .action(async () => (await import('../cluster/workers/worker-process.ts')).runWorker())
  return program
}

/** Adds a command that takes all settings. */
function service(program: Command, name: string): Command {
  const command = program.command(name).addHelpText('after', ABOUT_SETTINGS)
  return withSettings(
    command,
    SETTINGS.map(({ env }) => env),
  )
}

/** Adds a command that calls the API, with an option for each field of the request. */
function apiCommand(program: Command, name: string, body?: TObject): Command {
  const command = withSettings(program.command(name), ['HMAC_SECRET'])
    .option(
      '--url <url>',
      'of the service; default: one with these settings on this machine',
      parseUrl,
    )
    .option('--json', 'prints the answer as JSON')
  for (const option of body ? requestOptions(body) : []) command.addOption(option)
  return command
}

function withSettings(command: Command, names: readonly string[]): Command {
  for (const setting of SETTINGS.filter(({ env }) => names.includes(env))) {
    const { flag, hasFile } = setting
    command.addOption(new Option(`--${flag} <value>`, describe(setting)))
    if (hasFile) command.addOption(new Option(`--${flag}-file <path>`).hideHelp())
  }
  return command
}

function describe(setting: Setting): string {
  const { schema } = setting
  const preset = schema.preset ?? schema.default
  const note = preset === undefined ? 'required' : `default: ${preset}`
  const details = [allowedValues(setting), ...(preset === '' ? [] : [note])]
  return `${schema.description} (${details.join('; ')})`.replaceAll('`', '')
}

function example(...lines: readonly string[]): string {
  return `\nExample:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

/** Values by the names of flags, `http-port` for `httpPort`. */
function flagsOf(options: Flags): Flags {
  return Object.fromEntries(
    Object.entries(options).map(([key, value]) => [
      key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
      value,
    ]),
  )
}

function parsePositive(text: string): number {
  if (!(Number(text) > 0)) throw new InvalidArgumentError('Expected a number above 0.')
  return Number(text)
}

function parseTtl(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError('Expected whole seconds.')
  return Number(text)
}

function parseAddress(text: string): string {
  if (isIP(text) === 0) throw new InvalidArgumentError('Expected an IP address.')
  return text
}

function parseUrl(text: string): string {
  if (!/^https?:/.test(text) || !URL.canParse(text)) {
    throw new InvalidArgumentError('Expected an http or https URL.')
  }
  const { username, password, search, hash, pathname } = new URL(text)
  if (`${username}${password}${search}${hash}` !== '' || /\/api\/?$/.test(pathname)) {
    throw new InvalidArgumentError(
      'Expected the base URL, without /api at its end, a query, a fragment, user name and password.',
    )
  }
  return text
}

function parseStreamId(text: string): string {
  if (!isStreamId(text)) throw new InvalidArgumentError(`It ${STREAM_ID_ALLOWED}.`)
  return text
}

function abortAtStop(): AbortSignal {
  const stop = new AbortController()
  void stopSignal().then(() => stop.abort())
  return stop.signal
}
