/**
 * Child process of the supervisor: does what its messages order, ignores signals, and ends in order when the
 * supervisor is gone.
 *
 * @module
 */
import { inspect } from 'node:util'
import type { Config } from '../../config/schema.ts'
import { MillraceError } from '../../errors.ts'
import { DRAIN_MS } from '../../service/service-process.ts'
import type { ChildNotice, ChildOptions, Failure, Order } from './messages.ts'

/** Service or edge in a child process. */
export interface ChildRole {
  announce?(): void
  drain?(): Promise<void>
  reload(config: Config): Promise<void>
  close(options: { drainMs: number }): Promise<void>
  abandon(): Promise<void>
}

/**
 * @param start  starts what runs in this process
 * @throws {MillraceError} `USAGE` in a process without a supervisor
 */
export function runChild(start: (options: ChildOptions) => Promise<ChildRole>): void {
  if (!process.connected) {
    const message = 'this command is for processes that `millrace serve` starts: see millrace help'
    throw new MillraceError('USAGE', { message })
  }
  let role: Promise<ChildRole> | undefined
  let isStopping = false
  // A terminal and systemd signal all processes of the service. The supervisor tells each when to stop.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const)
    process.on(signal, () => undefined)

  /** Ends the process when `close` has settled; the first call decides. */
  const end = (exitCode: number, close: (running: ChildRole) => Promise<void>): void => {
    if (isStopping) return
    isStopping = true
    const closed = role?.then(close) ?? Promise.resolve()
    void closed.catch(() => undefined).then(() => process.exit(exitCode))
  }
  const stop = (drainMs: number) => end(0, (running) => running.close({ drainMs }))

  process.on('disconnect', () => stop(DRAIN_MS))
  process.on('message', (order: Order) => {
    switch (order.type) {
      case 'start':
        role = start(order.options)
        // After a failure, the supervisor ends the process, so that it has read why.
        return answer(role, { type: 'ready' }, 'failed')
      case 'announce':
        return void role?.then((running) => running.announce?.())
      case 'drain':
        return void role?.then((running) => running.drain?.())
      case 'reload':
        return answer(
          role?.then((running) => running.reload(order.config)),
          { type: 'reloaded' },
          'refused',
        )
      case 'stop':
        return stop(order.drainMs)
      case 'abandon':
        return end(1, (running) => running.abandon())
    }
  })
  notify({ type: 'loaded' })
}

function answer(
  work: Promise<unknown> | undefined,
  success: ChildNotice,
  refusal: 'failed' | 'refused',
) {
  void work?.then(
    () => notify(success),
    (error: unknown) => notify({ type: refusal, failure: describe(error) }),
  )
}

function notify(notice: ChildNotice): void {
  process.send?.(notice, () => undefined)
}

function describe(error: unknown): Failure {
  if (!(error instanceof MillraceError)) return { message: inspect(error) }
  return { code: error.code, message: error.message }
}
