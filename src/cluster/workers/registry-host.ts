/**
 * Registry of the processes of one machine, in the memory of their supervisor. They call it over their IPC channels.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { MillraceError } from '../../errors.ts'
import { SEQUENCE_CLOCK } from '../../stream/sequence-starts.ts'
import type { Clock } from '../../timing/clock.ts'
import { RegistryModel } from '../registry/registry-model.ts'
import { unavailable } from '../registry/unavailable.ts'
import type { Order, RegistryCall } from './messages.ts'

interface RegistryHostOptions {
  readonly maxStreams: number
  readonly clock: Pick<Clock, 'wallMs'>
}

/** `serve` each process as soon as it has been started. */
export class RegistryHost {
  readonly #model: RegistryModel
  /** Processes by the id of their node. */
  readonly #nodes = new Map<string, ChildProcess>()

  constructor({ maxStreams, clock }: RegistryHostOptions) {
    this.#model = new RegistryModel({
      nowMs: () => Math.floor(clock.wallMs()),
      server: () => 'supervisor',
      sequenceClock: SEQUENCE_CLOCK,
      maxTotal: maxStreams,
    })
  }

  serve(child: ChildProcess): void {
    child.on('message', (call: RegistryCall) => {
      if (call.type === 'registry') send(child, this.#answer(child, call))
    })
    child.once('exit', () => this.#endLeases(child))
  }

  /** All numbers of a process that is gone are known: others go on with its streams at once. */
  #endLeases(child: ChildProcess): void {
    for (const [node, owner] of this.#nodes) {
      if (owner !== child) continue
      this.#nodes.delete(node)
      this.#model.leaveNode(node)
    }
  }

  #answer(child: ChildProcess, { id, name, args }: RegistryCall): Order {
    try {
      return { type: 'registry', id, result: this.#call(child, name, args) }
    } catch (error) {
      const { code, message } =
        error instanceof MillraceError ? error : new MillraceError('REGISTRY_UNAVAILABLE')
      return { type: 'registry', id, failure: { code, message } }
    }
  }

  #call(child: ChildProcess, name: RegistryCall['name'], args: readonly unknown[]): unknown {
    if (name === 'command') return this.#command(args as [node: string, command: unknown])
    if (name === 'renewNode') this.#nodes.set((args[0] as { node: string }).node, child)
    const [owner, method] = name.startsWith('outboxes.')
      ? [this.#model.outboxes, name.slice('outboxes.'.length)]
      : [this.#model, name]
    const calls = owner as unknown as Record<string, (...args: readonly unknown[]) => unknown>
    return calls[method]!(...args)
  }

  #command([node, command]: [node: string, command: unknown]): void {
    const child = this.#nodes.get(node)
    if (child === undefined) throw unavailable()
    send(child, { type: 'command', command })
  }
}

/** Sends nothing to a process that has ended. */
function send(child: ChildProcess, order: Order): void {
  if (child.connected) child.send(order, () => undefined)
}
