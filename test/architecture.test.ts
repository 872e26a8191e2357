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
  // The table of refusals has SRT reject codes.
  'errors.ts': ['srt'],
  'logger.ts': [],
  'version.ts': [],
  timing: ['logger.ts'],
  // Beside the sub-rooms: what they share.
  srt: ['srt/wire'],
  'srt/wire': ['binary'],
  'srt/crypto': ['srt', 'srt/wire', 'timing'],
  'srt/receive': ['srt', 'srt/wire', 'srt/crypto', 'timing'],
  'srt/send': ['srt', 'srt/wire', 'srt/crypto'],
  'srt/handshake': ['srt', 'srt/wire', 'srt/crypto', 'binary', 'timing'],
  'srt/srtla': ['srt', 'srt/wire', 'srt/handshake', 'timing'],
  'srt/connection': [
    ...['srt', 'srt/wire', 'srt/crypto', 'srt/handshake', 'srt/receive', 'srt/send'],
    ...['timing'],
  ],
  'srt/io': [
    ...['srt', 'srt/wire', 'srt/crypto', 'srt/handshake', 'srt/connection', 'srt/srtla'],
    ...['timing'],
  ],
  'srt/index.ts': ['srt', 'srt/wire', 'srt/io', 'timing'],
  codec: ['binary'],
  mpegts: ['codec'],
  'mpegts/psi': ['mpegts', 'binary'],
  'mpegts/mux': ['mpegts', 'mpegts/psi', 'binary', 'codec'],
  'mpegts/demux': ['mpegts', 'mpegts/psi', 'mpegts/mux', 'binary', 'codec'],
  'mpegts/index.ts': ['mpegts', 'mpegts/psi', 'mpegts/demux', 'codec'],
  mp4: ['codec', 'binary'],
  pace: ['mpegts', 'mp4', 'errors.ts'],
  hls: ['mpegts'],
  'hls/store': ['hls', 'mpegts', 'binary', 'errors.ts'],
  'hls/cut': ['hls', 'mpegts'],
  'hls/rendition': ['hls', 'hls/store', 'hls/cut', 'mpegts', 'mp4', 'codec', 'binary'],
  'hls/playlist': ['hls', 'hls/store', 'hls/rendition', 'mpegts', 'codec'],
  'hls/packager.ts': ['hls', 'hls/cut', 'hls/rendition', 'hls/store', 'mpegts'],
  'hls/index.ts': [
    ...['hls', 'hls/packager.ts', 'hls/cut', 'hls/playlist', 'hls/rendition', 'hls/store'],
  ],
  // Records, calls and states that API, library and webhooks share; `calls` serves them.
  api: [
    ...['auth', 'http', 'mpegts', 'hls', 'srt', 'binary', 'timing'],
    ...['errors.ts', 'logger.ts', 'version.ts'],
  ],
  // Runs in browsers, so it takes types alone.
  client: ['api', 'errors.ts'],
  auth: ['srt', 'binary', 'timing', 'errors.ts'],
  diagnosis: ['api', 'mpegts', 'srt'],
  stream: ['api', 'diagnosis', 'mpegts', 'hls', 'pace', 'errors.ts', 'timing'],
  // Calls to others: where they may go, and when.
  outbound: ['api', 'srt', 'binary', 'timing', 'errors.ts'],
  webhook: ['auth', 'api', 'outbound', 'timing', 'logger.ts', 'errors.ts'],
  http: ['auth', 'binary', 'timing', 'errors.ts', 'logger.ts'],
  playback: ['http', 'api', 'auth', 'hls', 'binary', 'timing', 'errors.ts', 'logger.ts'],
  admin: [
    ...['http', 'api', 'auth', 'check', 'playback', 'hls', 'web', 'timing'],
    ...['errors.ts', 'logger.ts', 'version.ts'],
  ],
  // Runs in browsers.
  web: [],
  // Exchanges come from `follow` or a record; the judge has what was parsed of them, and calls the rules.
  'check/exchange.ts': [],
  'check/playlist': ['check/exchange.ts'],
  'check/media': ['mpegts', 'codec', 'binary'],
  'check/rules': ['check/exchange.ts', 'check/playlist', 'check/media'],
  'check/judge': ['check/exchange.ts', 'check/playlist', 'check/media', 'check/rules'],
  'check/follow': ['check/exchange.ts', 'check/playlist', 'timing'],
  'check/record.ts': ['check/exchange.ts', 'errors.ts'],
  'check/check-stream.ts': [
    ...['check/exchange.ts', 'check/follow', 'check/record.ts', 'check/judge', 'check/rules'],
    ...['check/playlist', 'errors.ts'],
  ],
  'check/report': [
    ...['check/check-stream.ts', 'check/judge', 'check/rules', 'check/media', 'check/record.ts'],
  ],
  check: [
    ...['check/check-stream.ts', 'check/report', 'check/exchange.ts', 'check/judge'],
    ...['check/rules', 'errors.ts'],
  ],
  // The top of the house: rooms that see both ends.
  ingest: [
    ...['api', 'outbound', 'srt', 'mpegts', 'stream', 'auth', 'binary', 'timing', 'errors.ts'],
  ],
  egress: ['api', 'outbound', 'srt', 'stream', 'auth', 'timing', 'errors.ts'],
  archive: ['api', 'codec', 'hls', 'stream', 'binary', 'timing', 'errors.ts'],
  config: ['api', 'binary', 'errors.ts', 'mpegts', 'srt', 'auth', 'outbound'],
  service: [
    ...['admin', 'api', 'archive', 'auth', 'config', 'egress', 'hls', 'http', 'ingest', 'mpegts'],
    ...['outbound', 'pace', 'playback', 'srt', 'stream', 'webhook'],
    ...['timing', 'errors.ts', 'logger.ts'],
  ],
  // Implements what the service declares in `service/cluster.ts`.
  cluster: [
    ...['service', 'api', 'archive', 'auth', 'config', 'hls', 'http', 'ingest', 'playback'],
    'stream',
    ...['webhook', 'binary', 'timing', 'errors.ts', 'logger.ts'],
  ],
  'create-server.ts': ['service', 'cluster', 'config', 'errors.ts', 'logger.ts'],
  'library.ts': ['create-server.ts', 'api', 'hls', 'playback', 'service', 'stream'],
  'index.ts': ['*'],
  cli: [
    ...[
      'create-server.ts',
      'api',
      'client',
      'cluster',
      'service',
      'config',
      'auth',
      'timing',
      'errors.ts',
      'logger.ts',
      'version.ts',
    ],
    'check',
    // The publisher sends over SRT.
    ...['srt', 'pace'],
  ],
  'cli.ts': ['cli', 'errors.ts'],
}

/** Borders that only types may cross: a file that needs more than the shape is in the wrong room. */
const TYPES_ONLY = [
  ['api', 'mpegts'],
  ['api', 'hls'],
  ['ingest', 'srt'],
  ['outbound', 'srt'],
  ['egress', 'srt'],
  ['client', 'api'],
  ['client', 'errors.ts'],
  // The checker runs in a process of its own.
  ['admin', 'check'],
]

/** Files that may read a clock, set a timer, create random numbers, open a socket or read the environment. */
const IMPURE = {
  // Player and client run in browsers.
  'Date.now|performance.now|process.hrtime': ['timing/clock.ts', 'web/', 'client/'],
  'setTimeout|setInterval|setImmediate': [
    'timing/clock.ts',
    'service/',
    'srt/io/listener.ts',
    'srt/io/caller.ts',
    'webhook/dispatcher.ts',
    'cli/publisher/',
    'http/',
    'playback/',
    'archive/',
    'admin/',
    'web/',
    'cluster/',
    'check/follow/check-clock.ts',
  ],
  'Math.random|randomBytes|randomInt|randomUUID': [
    'service/server.ts',
    'service/archiving.ts',
    'cluster/',
    'cli/',
    'srt/io/listener.ts',
    'srt/io/caller.ts',
    'auth/stream-key.ts',
    'admin/sessions.ts',
    'webhook/',
    'check/follow/redactor.ts',
  ],
  'node:dgram': [
    'srt/io/listener.ts',
    'srt/io/caller.ts',
    'srt/io/peer-sockets.ts',
    'srt/io/socket.ts',
  ],
  'node:fs': [
    'cli/',
    'check/command.ts',
    'check/record.ts',
    'cluster/registry/scripts.ts',
    'cluster/workers/socket-directory.ts',
    'http/',
    'api/calls/openapi.ts',
    'service/slates.ts',
    'srt/io/kernel-drops.ts',
    'outbound/look-up.ts',
  ],
  'node:dns': ['srt/io/caller.ts', 'outbound/look-up.ts'],
  'process.env': ['cli/'],
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

t.test(
  'nothing imports itself by way of others: of the files and folders in a folder, none',
  async (t) => {
    const folders = new Set(files.flatMap(({ file }) => foldersAbove(file)))
    for (const folder of folders) {
      const next = new Map<string, Set<string>>()
      for (const { file, source } of files) {
        for (const { target } of ownImports(file, source)) {
          const [from, to] = [childOf(folder, file), childOf(folder, target)]
          if (from === undefined || to === undefined || from === to) continue
          next.set(from, (next.get(from) ?? new Set()).add(to))
        }
      }
      const done = new Set<string>()
      const visit = (child: string, path: readonly string[]): void => {
        if (path.includes(child)) {
          t.fail(`${folder}: ${[...path.slice(path.indexOf(child)), child].join(' -> ')}`)
        }
        if (path.includes(child) || done.has(child)) return
        for (const other of next.get(child) ?? []) visit(other, [...path, child])
        done.add(child)
      }
      for (const child of next.keys()) visit(child, [])
    }
    t.ok(folders.has('srt/io/'), 'there is something to look at')
  },
)

t.test('clocks, timers, chance, sockets, files and the environment have owners', async (t) => {
  for (const [pattern, owners] of Object.entries(IMPURE)) {
    for (const { file, source } of files) {
      if (owners.some((owner) => file.startsWith(owner))) continue
      const used = withoutComments(source).match(new RegExp(pattern.replaceAll('.', '\\.')))
      if (used !== null) t.fail(`${file} uses ${used[0]}, which belongs to ${owners.join(', ')}`)
    }
  }
  t.ok(files.some(({ file }) => file === 'timing/clock.ts'))
})

t.test('npm test runs each folder of tests, alone or with others in a process', async (t) => {
  const read = (file: string) => readFileSync(join(TEST, file), 'utf8')
  const shared = readdirSync(join(TEST, 'rooms')).flatMap((file) => {
    const text = read(`rooms/${file}`)
    return [...text.matchAll(/'(\w+)'/g)].map(([, room]) => room!)
  })
  // With their subfolders.
  const alone = [...read('../.taprc').matchAll(/test\/(\w+)\/\*\*\//g)].map(([, room]) => room!)
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

/** Folders that the file is in, with a slash at the end; '' is all of `src`. */
function foldersAbove(file: string): string[] {
  const names = file.split('/').slice(0, -1)
  return ['', ...names.map((_, index) => `${names.slice(0, index + 1).join('/')}/`)]
}

/** File or folder directly in `folder` that is the file or contains it. */
function childOf(folder: string, file: string): string | undefined {
  return file.startsWith(folder) ? file.slice(folder.length).split('/')[0] : undefined
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
