/**
 * Child processes that end with the test.
 *
 * @module
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'

interface Test {
  teardown(close: () => unknown): unknown
}

export interface Program {
  readonly child: ChildProcess
  /** Standard output and standard error so far. */
  readonly output: () => string
  /** Exit code or signal, once all output has been read, also that of its children. */
  readonly exit: Promise<number | NodeJS.Signals>
  kill(signal?: NodeJS.Signals): void
}

export function start(
  t: Test,
  command: string,
  args: readonly string[],
  {
    env = {},
    cwd,
    stdin = 'ignore',
  }: { env?: Record<string, string>; cwd?: string; stdin?: 'ignore' | 'pipe' } = {},
): Program {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: [stdin, 'pipe', 'pipe'],
    // Own process group, so that children of a shell end with the shell.
    detached: true,
    ...(cwd === undefined ? {} : { cwd }),
  })
  const chunks: string[] = []
  child.stdout!.on('data', (chunk: Buffer) => chunks.push(chunk.toString()))
  child.stderr!.on('data', (chunk: Buffer) => chunks.push(chunk.toString()))
  const exit = once(child, 'close').then(
    ([code, signal]: unknown[]) => (code ?? signal) as number | NodeJS.Signals,
  )
  const kill = (signal: NodeJS.Signals = 'SIGTERM'): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  t.teardown(async () => {
    kill('SIGKILL')
    await exit
  })
  return { child, output: () => chunks.join(''), exit, kill }
}
