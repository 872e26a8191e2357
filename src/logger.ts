/**
 * Structured logs: one line for each event of a stream, none per packet or request at `info`. JSON, or text for a reader at
 * a terminal.
 *
 * @module
 */
import { styleText } from 'node:util'
import { levels, pino, type DestinationStream, type Logger } from 'pino'

export type { Logger }

interface LogSettings {
  readonly logLevel: string
  readonly logFormat: 'auto' | 'json' | 'pretty'
}

/** @param destination  receives JSON lines; default standard output */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: { name: 'millrace' } }
  return destination === undefined ? pino(options) : pino(options, destination)
}

/** Logger to standard output, as the settings say. */
export function openLogger({ logLevel, logFormat }: LogSettings): Logger {
  const { stdout } = process
  const isColored = stdout.isTTY && stdout.hasColors()
  const write = (line: string) => void stdout.write(readableLine(line, isColored))
  return createLogger(logLevel, isReadable(logFormat) ? { write } : undefined)
}

/** Whether the log is text; `auto`: if standard output is a terminal. */
export function isReadable(format: LogSettings['logFormat']): boolean {
  return format === 'pretty' || (format === 'auto' && process.stdout.isTTY)
}

/** @returns the JSON line as `12:04:31 WARN  message key=value`, in local time; a stack is on lines of its own */
export function readableLine(json: string, isColored: boolean): string {
  const { level, time, name: _name, msg, stack, ...values } = JSON.parse(json) as LogLine
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    isColored ? styleText(style, text, { validateStream: false }) : text
  const label = (levels.labels[level] ?? String(level)).toUpperCase().padEnd(5)
  const style =
    level >= levels.values['error']! ? 'red' : level >= levels.values['warn']! ? 'yellow' : 'green'
  const pairs = Object.entries(values).map(([key, value]) =>
    paint('gray', `${key}=${shown(value)}`),
  )
  const clock = new Date(time).toTimeString().slice(0, 8)
  const line = [paint('gray', clock), paint(style, label), ...(msg ? [visible(msg)] : []), ...pairs]
  const trace = (stack?.split('\n') ?? []).map((row) => `    ${visible(row.trim())}\n`)
  return `${line.join(' ')}\n${trace.join('')}`
}

interface LogLine {
  readonly level: number
  /** Milliseconds since 1970. */
  readonly time: number
  readonly name: string
  readonly msg?: string
  readonly stack?: string
  readonly [key: string]: unknown
}

function shown(value: unknown): string {
  return visible(
    typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value),
  )
}

/** Text of clients cannot move the cursor, change colors or reorder a line. */
function visible(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\u{fffd}')
}
