/**
 * Structured logs: one JSON line for each event of a stream, none per packet or request at `info`.
 *
 * @module
 */
import { pino, type DestinationStream, type Logger } from 'pino'

export type { Logger }

/** @param destination  receives the lines; default standard output */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: { name: 'millrace' } }
  return destination === undefined ? pino(options) : pino(options, destination)
}
