/** Arguments of the program, and its help. */
import t from 'tap'
import { BODIES } from '../../src/api/calls/bodies.ts'
import { createProgram } from '../../src/cli/program.ts'
import { SETTINGS } from '../../src/config/setting-names.ts'

/** Commands, as their help lists them. */
const COMMANDS = [
  ...['serve', 'demo', 'edge', 'check', 'publish', 'start', 'stop', 'status', 'streams'],
  ...['sign', 'sign-playback', 'webhook-secret', 'keygen'],
]

/** Runs the program with arguments that no command runs with. */
async function millrace(...args: string[]) {
  const texts = { out: '', err: '' }
  const program = createProgram()
  for (const command of [program, ...program.commands]) {
    command.configureOutput({
      writeOut: (text) => (texts.out += text),
      writeErr: (text) => (texts.err += text),
    })
  }
  const { code } = await program.parseAsync(args, { from: 'user' }).then(
    () => ({ code: 'ran' }),
    (error: { code: string }) => error,
  )
  return { code, ...texts }
}

t.test('--help of each command has its usage, its options and an example', async (t) => {
  const { out } = await millrace('--help')
  t.strictSame(
    [...out.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name).filter((it) => it !== 'help'),
    ['-v', '-h', ...COMMANDS].filter((it) => !it.startsWith('-')),
  )
  for (const name of COMMANDS) {
    const help = await millrace(name, '--help')
    t.match(help, { code: 'commander.helpDisplayed', err: '' }, name)
    t.match(help.out, new RegExp(`^Usage: millrace ${name} `), name)
    t.match(help.out, new RegExp(`^Example:\\n(  .*\\n)*  .*millrace ${name}`, 'm'), name)
    t.notMatch(help.out, /[0-9a-f]{64}/, 'no key')
  }
})

t.test('--help of serve has every setting with its default', async (t) => {
  const { out } = await millrace('serve', '--help')
  for (const { flag } of SETTINGS) t.match(out, new RegExp(`^ {2}--${flag} <value> `, 'm'))
  t.match(
    out.replaceAll(/\s+/g, ' '),
    'any free port (a whole number from 0 to 65535; default: 8080)',
  )
  t.match(out.replaceAll(/\s+/g, ' '), 'or two such values as new,old; required)')
  t.match(out, /--http-port is HTTP_PORT/)
})

t.test('start has each field of start-stream as an option', async (t) => {
  const { out } = await millrace('start', '--help')
  const { stream_id: _, issued_at: __, ...fields } = BODIES['start-stream'].properties
  for (const name of Object.keys(fields)) {
    t.match(out, new RegExp(`^ {2}--${name.replaceAll('_', '-')}( <value>)? `, 'm'))
  }
  const words = out.replaceAll(/\s+/g, ' ')
  t.match(words, 'a whole number from 20 to 8000')
  t.match(words, /--pull-url <value> [^-]+; a secret, which all users of this machine see/)
})

t.test('start, stop and status refuse what is no stream id, and what is no URL', async (t) => {
  for (const name of ['start', 'stop', 'status']) {
    t.match(await millrace(name), { code: 'commander.missingArgument' })
    t.match(await millrace(name, 'a/b'), {
      code: 'commander.invalidArgument',
      err: /studio|stream/,
    })
  }
  const { err } = await millrace('streams', '--url', 'live.example.org:8080')
  t.match(err, 'Expected an http or https URL.')
})

t.test('--url is a base URL, and a password in it is not repeated', async (t) => {
  const base = 'http://live.example.org'
  for (const url of [`${base}/api`, `${base}/api/`, `${base}/?a=b`, `${base}/#a`]) {
    t.match(await millrace('streams', '--url', url), { err: /without \/api at its end/ }, url)
  }
  const { err } = await millrace('streams', '--url', 'http://user:p4ssword@live.example.org')
  t.match(err, 'http://…@live.example.org')
  t.notMatch(err, 'p4ssword')
})

t.test('an unknown option has the one that was meant, and names no value', async (t) => {
  const { code, err } = await millrace('serve', '--hmac-secert', 's3cret')
  t.equal(code, 'commander.unknownOption')
  t.match(err, /^millrace: unknown option '--hmac-secert'\n\(Did you mean --hmac-secret\?\)\n/)
  t.notMatch(err, 's3cret')
  t.match(await millrace('serve', '--http-prot', '80'), { err: /Did you mean --http-port\?/ })
  t.match(await millrace('serve', '--http-port-file', 'x'), { code: 'commander.unknownOption' })
  t.match(await millrace('chekc', 'http://a/'), { err: /Did you mean check\?/ })
})

t.test('check refuses arguments that are no check', async (t) => {
  for (const args of [
    [],
    ['http://a/', 'http://b/'],
    ['http://a/', '--replay', 'dir'],
    ['--replay', 'dir', '--record', 'other'],
    ['http://a/', '--seconds', 'x'],
    ['http://a/', '--seconds', '0'],
    ['http://a/', '--player', 'vlc'],
    ['http://a/', '--speed', '2'],
  ]) {
    const { code, err } = await millrace('check', ...args)
    t.match(code, /^commander\./, args.join(' '))
    t.match(err, /^millrace: .*\n/)
  }
})

t.test('sign-playback refuses arguments that no token can have', async (t) => {
  for (const args of [[], ['a/b'], ['a', 'b'], ['a', '--ttl', '0'], ['a', '--address', 'x']]) {
    const { code } = await millrace('sign-playback', ...args)
    t.match(code, /^commander\./, args.join(' '))
  }
})
