/**
 * Commands to nodes: a Redis stream each. The state that a command is about is written first, so a lost command delays
 * what it asks for, and a repeated one changes nothing.
 *
 * @module
 */
import type { Redis } from '../redis.ts'
import { runScript } from './scripts.ts'

export interface NodeCommand {
  /** Where to read on. */
  readonly at: string
  readonly command: unknown
}

/** Unread commands of a node: above that, the oldest are lost. */
const MAX_UNREAD = 1000
const UNREAD_MS = 60 * 60 * 1000
const MAX_CHARACTERS = 8192
const MAX_READ = 100
/** Time that a blocking read may take beyond its wait, in milliseconds. */
const MARGIN_MS = 500

/** Before the first command of a node. */
export const FIRST_COMMAND = '0-0'

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

function keyOf(node: string): string {
  return `mr:node:${node}:commands`
}
