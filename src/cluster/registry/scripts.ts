/**
 * The registry protocol: Lua scripts, each of which Redis carries out as a whole. `scripts/prelude.lua` stands before each.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { MillraceError } from '../../errors.ts'
import type { Argument, Redis } from './redis.ts'

const NAMES = [
  'renew-node',
  'leave-node',
  'list-nodes',
  'start',
  'update',
  'claim',
  'advance',
  'restore',
  'stop',
  'use-key',
  'revoke-key',
  'get',
  'list',
  'owned',
  'orphans',
  'overdue',
  'ports',
  'send-command',
  'outbox',
  'unannounced',
  'announce',
] as const

export type ScriptName = (typeof NAMES)[number]

interface Script {
  readonly source: string
  readonly sha1: string
}

const prelude = read('prelude')

const SCRIPTS = Object.fromEntries(
  NAMES.map((name) => {
    const source = `${prelude}\n${read(name)}`
    return [name, { source, sha1: createHash('sha1').update(source).digest('hex') }]
  }),
) as Readonly<Record<ScriptName, Script>>

/** Runs a script by its hash, and sends its text to a server that does not know it. */
export async function runScript(
  redis: Pick<Redis, 'command'>,
  name: ScriptName,
  args: readonly (Argument | number)[],
): Promise<unknown> {
  const { source, sha1 } = SCRIPTS[name]
  const rest = ['0', ...args.map((arg) => (typeof arg === 'number' ? String(arg) : arg))]
  try {
    return await redis.command(['EVALSHA', sha1, ...rest])
  } catch (error) {
    if (!isUnknownScript(error)) throw error
    return await redis.command(['EVAL', source, ...rest])
  }
}

function isUnknownScript(error: unknown): boolean {
  const cause = error instanceof MillraceError ? error.cause : undefined
  return cause instanceof Error && cause.message.startsWith('NOSCRIPT')
}

function read(name: string): string {
  return readFileSync(new URL(`scripts/${name}.lua`, import.meta.url), 'utf8')
}
