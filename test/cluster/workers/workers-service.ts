/**
 * The built service with HTTP_WORKERS, as a group of processes.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { EndpointName } from '../../../src/client/index.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { freePorts } from '../../support/free-port.ts'
import { start, type Program } from '../../support/process.ts'
import { callApi, tryApi, type ApiReply } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url))

export interface WorkersService {
  readonly program: Program
  readonly url: string
  readonly srtPort: number
  /** Directory for temporary files; empty once nothing is left. */
  readonly folder: string
  /** Processes of the service, by command, in the order of their start. */
  pids(command: 'serve' | 'ingest-process' | 'worker-process'): number[]
  /** Log lines, parsed. */
  lines(): Record<string, unknown>[]
  api(name: EndpointName, body: object): Promise<ApiReply>
  tryApi(name: EndpointName, body: object): Promise<ApiReply>
  /** Text of a playlist that is served; undefined otherwise. */
  readPlaylist(streamId: string): Promise<string | undefined>
}

export function spawnService(t: Test, env: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'mr-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const program = start(t, process.execPath, [CLI, 'serve'], {
    env: {
      HMAC_SECRET: randomBytes(32).toString('hex'),
      JWT_SECRET: randomBytes(32).toString('hex'),
      ...{ HTTP_HOST: '127.0.0.1', SRT_HOST: '127.0.0.1', SRT_PORT: '0' },
      ...{ PUBLIC_HOST: '127.0.0.1', HLS_SEGMENT_SEC: '1', HTTP_WORKERS: '2' },
      ...{ TMPDIR: folder },
      ...env,
    },
  })
  return { program, folder }
}

/** Starts the service with two workers, and waits until it listens. */
export async function serveWithWorkers(
  t: Test,
  env: Record<string, string> = {},
): Promise<WorkersService> {
  const hmacSecret = randomBytes(32).toString('hex')
  const [httpPort, srtPort] = (await freePorts(2)) as [number, number]
  const { program, folder } = spawnService(t, {
    HMAC_SECRET: hmacSecret,
    HTTP_PORT: String(httpPort),
    SRT_PORT: String(srtPort),
    ...env,
  })
  await until('listening', () => program.output().includes('"msg":"listening"'))
  const url = `http://127.0.0.1:${httpPort}`
  return {
    program,
    url,
    srtPort,
    folder,
    pids: (command) => groupOf(program.child.pid!).filter((pid) => commandOf(pid) === command),
    lines: () =>
      program
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    api: (name, body) => callApi(url, name, body, hmacSecret),
    tryApi: (name, body) => tryApi(url, name, body, hmacSecret),
    readPlaylist: async (streamId) => {
      const reply = await fetch(`${url}/video/${streamId}/playlist.m3u8`).catch(() => undefined)
      return reply?.ok === true ? reply.text() : undefined
    },
  }
}

/** Starts a stream and publishes a clip to it until the test ends, with reconnects. */
export async function publishStream(t: Test, service: WorkersService, streamId: string) {
  const { body } = await service.api('start-stream', { stream_id: streamId })
  const { events } = publishDemo(t, body.data['srt_url'], { mayFail: true })
  await until('a playlist', async () => {
    const playlist = await service.readPlaylist(streamId)
    return playlist?.includes('#EXTINF')
  })
  return { events }
}

/** Living processes of a process group, in the order of their start: their ids begin anew at some time. */
export function groupOf(groupId: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), ...statOf(name) }))
    .filter(({ group }) => group === groupId)
    .toSorted((a, b) => a.startedTicks! - b.startedTicks! || a.pid - b.pid)
    .map(({ pid }) => pid)
}

/** Undefined for a process that has ended, even if nobody has read its exit code yet. See proc_pid_stat(5). */
function statOf(pid: string) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z') return undefined
    return { group: Number(fields[2]), startedTicks: Number(fields[19]) }
  } catch {
    return undefined
  }
}

function commandOf(pid: number): string | undefined {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return args[args.indexOf(CLI) + 1]
  } catch {
    return undefined
  }
}
