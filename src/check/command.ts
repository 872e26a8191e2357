/**
 * `millrace check`: arguments, progress, and where the reports go.
 *
 * @module
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { MillraceError } from '../errors.ts'
import { checkStream, rulesFor } from './check-stream.ts'
import { formatJson } from './report/json.ts'
import { formatJunit } from './report/junit.ts'
import { formatText, progressLine } from './report/text.ts'
import { exitStatus } from './report/verdicts.ts'
import { PLAYERS, type Player } from './rules/rule.ts'

export const CHECK_USAGE =
  'millrace check URL [--seconds 60] [--player apple|hlsjs|shaka|videojs|android|all] [--json FILE] [--junit FILE] [--record DIR]\n' +
  '       millrace check --replay DIR [--player …] [--json FILE] [--junit FILE]'

export interface CommandOutput {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/**
 * @param signal  ends the check early, with a report of what was found
 * @returns exit status: 0 where all MUST rules are kept, 1 where one is broken, 2 where no playlist could be fetched
 * @throws {MillraceError} `USAGE`, `RECORD_INVALID`
 */
export async function runCheck(
  args: readonly string[],
  { stdout, stderr }: CommandOutput,
  signal: AbortSignal,
): Promise<number> {
  const { url, seconds, player, json, junit, record, replay } = parse(args)
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

function parse(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '60' },
      player: { type: 'string', default: 'all' },
      json: { type: 'string' },
      junit: { type: 'string' },
      record: { type: 'string' },
      replay: { type: 'string' },
    },
  })
  const [url] = positionals
  const isReplay = values.replay !== undefined
  const sources = positionals.length + (isReplay ? 1 : 0)
  if (sources !== 1 || (isReplay && values.record !== undefined)) throw usage('')
  const seconds = Number(values.seconds)
  if (!(seconds > 0)) throw usage(`--seconds is ${values.seconds}: expected a number; `)
  return { ...values, url, seconds, player: parsePlayer(values.player) }
}

function parsePlayer(name: string): Player | 'all' {
  const player = [...PLAYERS, 'all' as const].find((each) => each === name)
  if (player === undefined) throw usage(`--player is ${name}: `)
  return player
}

function usage(reason: string): MillraceError {
  return new MillraceError('USAGE', { message: `${reason}expected: ${CHECK_USAGE}` })
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (cause) {
    throw new MillraceError('USAGE', { message: `cannot write ${file}`, cause })
  }
}
