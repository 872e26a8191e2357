/**
 * Commands of other nodes at this one, read from Redis as they come.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../errors.ts'
import { Redis, type RedisOptions } from './redis.ts'
import { FIRST_COMMAND, readCommands } from './registry/node-commands.ts'

/** Time for which Redis holds a read without commands, and pause after one that failed, in milliseconds. */
const WAIT_MS = 5000
const PAUSE_MS = 250

/** `start`, then `close`. Has a connection of its own, which its reads block. */
export class CommandReader {
  readonly #redis: Redis
  readonly #node: string
  readonly #onCommand: (command: unknown) => Promise<void>
  readonly #closing = new AbortController()
  #done: Promise<void> = Promise.resolve()

  /** @param onCommand  gets what another node has sent, unchecked, one after the other, again after
   *   `REGISTRY_UNAVAILABLE`; anything else that it throws is ignored */
  constructor(options: RedisOptions, node: string, onCommand: (command: unknown) => Promise<void>) {
    this.#redis = new Redis(options)
    this.#node = node
    this.#onCommand = onCommand
  }

  start(): void {
    this.#redis.connect()
    this.#done = this.#read()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#redis.close()
    await this.#done
  }

  async #read(): Promise<void> {
    const { signal } = this.#closing
    let after = FIRST_COMMAND
    while (!signal.aborted) {
      try {
        const commands = await readCommands(this.#redis, this.#node, { after, waitMs: WAIT_MS })
        for (const { at, command } of commands) {
          await this.#onCommand(command).catch(throwIfAway)
          after = at
        }
      } catch {
        await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined)
      }
    }
  }
}

function throwIfAway(error: unknown): void {
  if (error instanceof MillraceError && error.code === 'REGISTRY_UNAVAILABLE') throw error
}
