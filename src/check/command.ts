/**
 * `millrace check`: progress, and where the reports go.
 *
 * @module
 */
import { writeFileSync } from 'node:fs'
import { MillraceError } from '../errors.ts'
import { checkStream, rulesFor } from './check-stream.ts'
import { formatJson, formatJunit } from './report/machine.ts'
import { formatText, progressLine } from './report/text.ts'
import { exitStatus } from './report/verdicts.ts'
import { PLAYERS, type Player } from './rules/rule.ts'

/** Arguments: a URL, or a record to be judged again. */
export interface CheckArguments {
  readonly url?: string | undefined
  readonly replay?: string | undefined
  readonly seconds?: number
  readonly player: Player | 'all'
  /** Files and a folder to write. */
  readonly json?: string
  readonly junit?: string
  readonly record?: string
}

interface CommandOutput {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/**
 * @param signal  ends the check early, with a report of what was found
 * @returns exit status: 0 where all MUST rules are kept, 1 where one is broken, 2 where no playlist could be fetched
 * @throws {MillraceError} `USAGE`, `RECORD_INVALID`
 */
export async function runCheck(
  { url, seconds, player, json, junit, record, replay }: CheckArguments,
  { stdout, stderr }: CommandOutput,
  signal: AbortSignal,
): Promise<number> {
  const onProgress = stderr.isTTY
    ? (progress: Parameters<typeof progressLine>[0]) =>
        stderr.write(`\r${progressLine(progress)}\u001B[K`)
    : undefined
  const judging = { player, onProgress }
  const result = await checkStream(
    replay === undefined
      ? { ...judging, url: url!, seconds, record, signal }
      : { ...judging, replay },
  )
  if (onProgress !== undefined) stderr.write('\r\u001B[K')
  const players = player === 'all' ? PLAYERS : [player]
  stdout.write(formatText(result, { players, stream: stdout }))
  if (json !== undefined) write(json, formatJson(result))
  if (junit !== undefined) write(junit, formatJunit(result, rulesFor(player)))
  return exitStatus(result)
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (cause) {
    throw new MillraceError('USAGE', { message: `cannot write ${file}`, cause })
  }
}
