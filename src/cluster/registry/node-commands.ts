/**
 * Commands to nodes: a Redis stream each. The state that a command is about is written first, so a lost command delays
 * what it asks for, and a repeated one changes nothing.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../../errors.ts'
import { Redis, type RedisOptions } from './redis.ts'
import { runScript } from './scripts.ts'

interface NodeCommand {
  /** Where to read on. */
  readonly at: string
  readonly command: unknown
}

/** Sends a command to a node. */
export type SendCommand = (node: string, command: unknown) => Promise<void>

/** Unread commands of a node: above that, the oldest are lost. */
const MAX_UNREAD = 1000
const UNREAD_MS = 60 * 60 * 1000
const MAX_CHARACTERS = 8192
const MAX_READ = 100
/** Time that a blocking read may take beyond its wait, in milliseconds. */
const MARGIN_MS = 500

/** Before the first command of a node. */
const FIRST_COMMAND = '0-0'

export async function sendCommand(
  redis: Pick<Redis, 'command'>,
  node: string,
  command: unknown,
): Promise<void> {
  const text = JSON.stringify(command)
  if (text.length > MAX_CHARACTERS) throw new RangeError(`a command of ${text.length} characters`)
  await runScript(redis, 'send-command', [keyOf(node), MAX_UNREAD, UNREAD_MS, text])
}

/**
 * Reads the commands behind `after`, at most 100.
 *
 * @param redis  a connection of its own, which no other command uses while it waits
 */
export async function readCommands(
  redis: Pick<Redis, 'command'>,
  node: string,
  { after = FIRST_COMMAND, waitMs }: { readonly after?: string; readonly waitMs: number },
): Promise<NodeCommand[]> {
  const options = ['COUNT', String(MAX_READ), ...(waitMs > 0 ? ['BLOCK', String(waitMs)] : [])]
  const reply = (await redis.command(['XREAD', ...options, 'STREAMS', keyOf(node), after], {
    timeoutMs: waitMs + MARGIN_MS,
  })) as [string, [string, string[]][]][] | null
  return (reply?.[0]?.[1] ?? []).map(([at, fields]) => ({
    at,
    command: JSON.parse(fields[1] ?? 'null') as unknown,
  }))
}

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

function keyOf(node: string): string {
  return `mr:node:${node}:commands`
}
