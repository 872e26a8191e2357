/**
 * The built service in a process of its own, as target of an attack.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { start, type Program } from '../support/process.ts'
import { until } from '../support/until.ts'
import type { Target } from './target.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

export interface ServiceProcess {
  readonly program: Program
  readonly target: Target
  /** `http://127.0.0.1:port` */
  readonly url: string
}

/** Starts the service on free ports of the loopback; it ends with the test. */
export async function startServiceProcess(
  t: Parameters<typeof start>[0],
  { env = {}, nodeArgs = [] }: { env?: Record<string, string>; nodeArgs?: readonly string[] } = {},
): Promise<ServiceProcess> {
  const [hmacSecret, jwtSecret] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  const program = start(t, process.execPath, [...nodeArgs, CLI, 'serve'], {
    env: {
      HMAC_SECRET: hmacSecret,
      JWT_SECRET: jwtSecret,
      ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: '0', SRT_HOST: '127.0.0.1', SRT_PORT: '0' },
      ...{ PUBLIC_HOST: '127.0.0.1' },
      ...env,
    },
  })
  const [, url = '', srtPort] = await until('listening', () =>
    /"http":"([^"]+)","srt_port":(\d+)/.exec(program.output()),
  )
  const httpPort = Number(new URL(url).port)
  const pid = program.child.pid!
  const target = {
    host: '127.0.0.1',
    httpPort,
    srtPort: Number(srtPort),
    hmacSecret,
    jwtSecret,
    pid,
  }
  return { program, target, url }
}

/** Memory that a process has in use. */
export function rssBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}
