/**
 * The rules of the house that no compiler knows: who may import whom, and who may touch clock, chance and sockets.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const SRC = fileURLToPath(new URL('../src', import.meta.url))
const TEST = import.meta.dirname

/** Folders of tests without those of `npm test`. */
const NO_TESTS = new Set(['peers', 'rooms', 'soak'])

/**
 * Room -> rooms (or single files) of ours that it may import. A room may always import itself. From the outside, a room
 * has no parts: `mpegts` is all of it.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  binary: [],
  'clock.ts': [],
  'errors.ts': [],
  'logger.ts': [],
  'token-bucket.ts': [],
  'time-limit.ts': [],
  'interval-limiter.ts': [],
  'limited-logger.ts': ['logger.ts', 'clock.ts', 'token-bucket.ts'],
  // Beside the sub-rooms: what they share.
  srt: ['srt/wire', 'errors.ts'],
  'srt/wire': ['binary'],
  'srt/crypto': ['srt/wire', 'binary', 'token-bucket.ts'],
  'srt/receive': ['srt', 'srt/wire', 'srt/crypto', 'binary', 'token-bucket.ts'],
  'srt/send': ['srt', 'srt/wire', 'srt/crypto', 'binary'],
  'srt/handshake': ['srt', 'srt/wire', 'srt/crypto', 'binary', 'errors.ts', 'token-bucket.ts'],
  'srt/connection': [
    ...['srt', 'srt/wire', 'srt/crypto', 'srt/handshake', 'srt/receive', 'srt/send'],
    ...['errors.ts', 'token-bucket.ts'],
  ],
  'srt/io': [
    ...['srt', 'srt/wire', 'srt/crypto', 'srt/handshake', 'srt/connection'],
    ...['binary', 'errors.ts', 'clock.ts'],
  ],
  'srt/index.ts': ['srt', 'srt/wire', 'srt/io'],
  codec: ['binary'],
  mpegts: ['binary', 'codec'],
  'mpegts/psi': ['mpegts', 'binary'],
  'mpegts/mux': ['mpegts', 'mpegts/psi', 'binary', 'codec'],
  'mpegts/demux': ['mpegts', 'mpegts/psi', 'mpegts/mux', 'binary', 'codec'],
  'mpegts/index.ts': ['mpegts', 'mpegts/psi', 'mpegts/demux'],
  mp4: ['codec'],
  hls: ['mpegts'],
  'hls/store': ['hls', 'mpegts'],
  'hls/cut': ['hls', 'mpegts'],
  'hls/rendition': ['hls', 'hls/store', 'hls/cut', 'mpegts', 'mp4', 'codec'],
  'hls/playlist': ['hls', 'hls/store', 'hls/rendition', 'mpegts', 'codec'],
  'hls/packager-output.ts': ['hls', 'hls/cut', 'hls/rendition', 'mpegts'],
  'hls/packager.ts': ['hls', 'hls/packager-output.ts', 'hls/cut', 'hls/rendition', 'mpegts'],
  'hls/index.ts': ['hls', 'hls/packager.ts', 'hls/playlist', 'hls/store'],
  contract: ['mpegts', 'hls', 'srt', 'binary', 'errors.ts'],
  // Runs in browsers, so it takes types alone.
  client: ['contract', 'errors.ts'],
  auth: ['contract', 'srt', 'binary', 'errors.ts'],
  diagnosis: ['contract', 'mpegts', 'srt'],
  stream: ['contract', 'diagnosis', 'mpegts', 'hls', 'errors.ts', 'clock.ts'],
  webhook: [
    ...['auth', 'contract', 'binary'],
    ...['clock.ts', 'logger.ts', 'errors.ts', 'interval-limiter.ts'],
  ],
  http: [
    ...['cluster', 'contract', 'binary', 'clock.ts', 'auth', 'errors.ts', 'logger.ts'],
    ...['interval-limiter.ts', 'token-bucket.ts'],
  ],
  // Runs in browsers.
  'http/admin/page': ['http'],
  edge: [
    ...['cluster', 'http', 'contract', 'hls', 'auth', 'binary'],
    ...['clock.ts', 'errors.ts', 'time-limit.ts', 'token-bucket.ts'],
  ],
  // Publishing a file joins SRT and MPEG-TS the other way round; it serves no one but the command line.
  publisher: ['srt', 'mpegts', 'binary', 'errors.ts', 'clock.ts'],
  // The judge sees exchanges alone; `follow` makes them, `record` keeps them.
  check: [
    ...['check/follow', 'check/record', 'mpegts', 'codec', 'binary'],
    ...['clock.ts', 'errors.ts'],
  ],
  'check/follow': ['check'],
  'check/record': ['check', 'errors.ts'],
  // The cluster speaks of streams in the registry; `service` joins them to those of the process.
  cluster: ['contract', 'hls', 'auth', 'clock.ts', 'errors.ts', 'time-limit.ts'],
  // The top of the house: rooms that see both ends.
  ingest: [
    'contract',
    'srt',
    'mpegts',
    'stream',
    'auth',
    'binary',
    'clock.ts',
    'errors.ts',
    'token-bucket.ts',
  ],
  config: ['contract', 'binary', 'errors.ts', 'mpegts', 'srt', 'auth', 'webhook'],
  service: ['*'],
  'index.ts': ['*'],
  supervisor: ['service', 'config', 'clock.ts', 'errors.ts', 'logger.ts'],
  commands: [
    ...['supervisor', 'service', 'config', 'contract', 'auth', 'publisher'],
    ...['clock.ts', 'errors.ts', 'logger.ts'],
  ],
  'cli.ts': ['commands', 'supervisor', 'check', 'config', 'publisher', 'errors.ts'],
}

/** Borders that only types may cross: a file that needs more than the shape is in the wrong room. */
const TYPES_ONLY = [
  ['http', 'cluster'],
  ['edge', 'cluster'],
  ['contract', 'mpegts'],
  ['contract', 'hls'],
  ['ingest', 'srt'],
  ['client', 'contract'],
  ['cluster', 'hls'],
  ['client', 'errors.ts'],
  ['http/admin/page', 'http'],
]

/** Files that may read a clock, set a timer, create random numbers, open a socket or read the environment. */
const IMPURE = {
  // Player and client run in browsers.
  'Date.now|performance.now|process.hrtime': ['clock.ts', 'http/player/', 'client/'],
  'setTimeout|setInterval|setImmediate': [
    'clock.ts',
    'time-limit.ts',
    'service/',
    'srt/io/listener.ts',
    'srt/io/caller.ts',
    'webhook/dispatcher.ts',
    'publisher/',
    'http/',
    'edge/',
    'cluster/',
    'check/follow/',
    'supervisor/',
  ],
  'Math.random|randomBytes|randomInt|randomUUID': [
    'service/server.ts',
    'service/cluster/',
    'cli.ts',
    'commands/',
    'srt/io/listener.ts',
    'srt/io/caller.ts',
    'auth/stream-key.ts',
    'http/admin/sessions.ts',
    'webhook/',
    'check/follow/redactor.ts',
  ],
  'node:dgram': ['srt/io/listener.ts', 'srt/io/caller.ts', 'srt/io/socket.ts'],
  'node:fs': [
    'cli.ts',
    'commands/',
    'check/command.ts',
    'check/record/',
    'cluster/registry/scripts.ts',
    'http/',
    'publisher/',
    'srt/io/kernel-drops.ts',
    'supervisor/socket-directory.ts',
    'webhook/look-up.ts',
  ],
  'node:dns': ['srt/io/caller.ts', 'webhook/look-up.ts'],
  'process.env': ['commands/'],
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, source: readFileSync(join(SRC, file), 'utf8') }))

t.test('imports go the way the data flows, and only where the table lets them', async (t) => {
  const unused = new Set(
    Object.entries(MAY_IMPORT).flatMap(([from, rooms]) => rooms.map((to) => `${from} -> ${to}`)),
  )
  for (const { file, source } of files) {
    for (const { target, typesOnly } of ownImports(file, source)) {
      const from = roomOf(file)
      const to = houseOf(file) === houseOf(target) ? roomOf(target) : houseOf(target)
      if (from === to) continue
      unused.delete(`${from} -> ${to}`)
      const allowed = MAY_IMPORT[from]
      if (allowed === undefined) t.fail(`${from} stands in no room of the table`)
      else if (!allowed.includes('*') && !allowed.includes(to)) {
        t.fail(`${file} imports ${target}: ${from} may import ${allowed.join(', ') || 'nothing'}`)
      }
      if (!typesOnly && TYPES_ONLY.some(([a, b]) => a === from && b === to)) {
        t.fail(`${file} imports more than types of ${target}`)
      }
    }
  }
  t.strictSame(
    [...unused].filter((edge) => !edge.endsWith('*')),
    [],
    'the table lists only what is used',
  )
  t.ok(files.length > 10, 'there is something to look at')
})

t.test('no file imports itself by way of others', async (t) => {
  const imports = new Map(
    files.map(({ file, source }) => [file, ownImports(file, source).map(({ target }) => target)]),
  )
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) t.fail([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (path.includes(file) || done.has(file) || !imports.has(file)) return
    for (const target of imports.get(file) ?? []) visit(target, [...path, file])
    done.add(file)
  }
  for (const { file } of files) visit(file, [])
  t.equal(done.size, files.length)
})

t.test('clocks, timers, chance, sockets, files and the environment have owners', async (t) => {
  for (const [pattern, owners] of Object.entries(IMPURE)) {
    for (const { file, source } of files) {
      if (owners.some((owner) => file.startsWith(owner))) continue
      const used = withoutComments(source).match(new RegExp(pattern.replaceAll('.', '\\.')))
      if (used !== null) t.fail(`${file} uses ${used[0]}, which belongs to ${owners.join(', ')}`)
    }
  }
  t.ok(files.some(({ file }) => file === 'clock.ts'))
})

t.test('npm test runs each folder of tests, alone or with others in a process', async (t) => {
  const read = (file: string) => readFileSync(join(TEST, file), 'utf8')
  const shared = readdirSync(join(TEST, 'rooms')).flatMap((file) => {
    const text = read(`rooms/${file}`)
    return [...text.matchAll(/'(\w+)'/g)].map(([, room]) => room!)
  })
  const alone = /\{(.*)\}/.exec(read('../.taprc'))![1]!.split(',')
  const folders = readdirSync(TEST, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NO_TESTS.has(entry.name))
    .map(({ name }) => name)
  t.strictSame([...shared, ...alone].toSorted(), folders)
})

t.test('no file is a drawer', async (t) => {
  const drawers = files.filter(({ file }) =>
    /(^|\/)(utils?|common|helpers?|misc)(\.ts|\/)/.test(file),
  )
  t.strictSame(drawers, [])
})

function ownImports(file: string, source: string) {
  const pattern = /(?:^(?:import|export)\s+(type\s+)?[^'"`;]*?from\s+|await import\()'(\.[^']+)'/gm
  return [...source.matchAll(pattern)].map(([statement, type, path]) => ({
    target: relative('.', normalize(join(dirname(file), path!))),
    typesOnly: type !== undefined || /\{\s*(type\s+\w+(\s+as\s+\w+)?\s*,?\s*)+\}/.test(statement),
  }))
}

/** The smallest room of the table that the file is in, else its top folder. */
function roomOf(file: string): string {
  const rooms = Object.keys(MAY_IMPORT).filter(
    (room) => file === room || file.startsWith(`${room}/`),
  )
  return rooms.toSorted((a, b) => b.length - a.length)[0] ?? houseOf(file)
}

function houseOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : file
}

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}
