/**
 * Calls of a child process at the registry of its supervisor.
 *
 * @module
 */
import { MillraceError } from '../../errors.ts'
import type { NodeLinks } from '../node/node-links.ts'
import { unavailable } from '../registry/unavailable.ts'
import type { Order, RegistryCall, RegistryCallName } from './messages.ts'

/** End of the IPC channel at the side of a child. */
type Channel = Pick<NodeJS.Process, 'on' | 'send'>

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** One for each process. All calls throw `REGISTRY_UNAVAILABLE` once the supervisor is gone. */
export class RegistryClient {
  readonly registry: NodeLinks['registry']
  readonly outboxes: NodeLinks['outboxes']
  readonly #channel: Channel
  readonly #waiting = new Map<number, Waiting>()
  #calls = 0
  #isAway = false
  #onCommand: (command: unknown) => void = () => undefined

  constructor(channel: Channel = process) {
    this.#channel = channel
    this.registry = this.#proxy('') as NodeLinks['registry']
    this.outboxes = this.#proxy('outboxes.') as NodeLinks['outboxes']
    channel.on('message', (order: Order) => this.#take(order))
    channel.on('disconnect', () => {
      this.#isAway = true
      for (const { reject } of this.#waiting.values()) reject(unavailable())
      this.#waiting.clear()
    })
  }

  get isReady(): boolean {
    return !this.#isAway
  }

  /** @param onCommand  gets what another node has sent */
  readCommands(onCommand: (command: unknown) => void): void {
    this.#onCommand = onCommand
  }

  readonly sendCommand = async (node: string, command: unknown): Promise<void> => {
    await this.#call('command', [node, command])
  }

  #proxy(prefix: string): object {
    return new Proxy(
      {},
      {
        get:
          (_, name) =>
          (...args: unknown[]) =>
            this.#call(`${prefix}${String(name)}` as RegistryCallName, args),
      },
    )
  }

  #call(name: RegistryCallName, args: readonly unknown[]): Promise<unknown> {
    if (this.#isAway) return Promise.reject(unavailable())
    const id = this.#calls++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      const call: RegistryCall = { type: 'registry', id, name, args: args.map(asJson) }
      this.#channel.send!(call, undefined, undefined, (error) => {
        if (error !== null && this.#waiting.delete(id)) reject(unavailable(error))
      })
    })
  }

  #take(order: Order): void {
    if (order.type === 'command') this.#onCommand(order.command)
    if (order.type !== 'registry') return
    const waiting = this.#waiting.get(order.id)
    this.#waiting.delete(order.id)
    if (order.failure === undefined) waiting?.resolve(order.result)
    else waiting?.reject(toError(order.failure))
  }
}

/** As Redis keeps it: what is undefined is not there. */
function asJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

function toError({
  code,
  message,
}: {
  code: MillraceError['code']
  message: string
}): MillraceError {
  return code === 'REGISTRY_UNAVAILABLE' ? unavailable() : new MillraceError(code, { message })
}
