/**
 * What commands share: settings and logger from the command line, signals, output.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseFlags, readOptions } from '../config/environment.ts'
import { completeOptions } from '../config/options.ts'
import type { Config, Options } from '../config/schema.ts'
import { createLogger, type Logger } from '../logger.ts'

/** @param values  values of flags */
export function givenOptions(values: ReturnType<typeof parseFlags>['values']): Partial<Options> {
  return readOptions(process.env, values, readText)
}

export function requiredOptions(args: readonly string[]): Options {
  // `completeOptions` rejects missing secrets; its message names the command that makes them.
  return givenOptions(parseFlags(args).values) as Options
}

/** Secrets for a program that no client signs requests to. */
export function throwAwaySecrets(): Pick<Options, 'hmacSecret' | 'jwtSecret'> {
  const [hmacSecret, jwtSecret] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  return { hmacSecret, jwtSecret }
}

/** @param warnings  logged first */
export function prepare(
  options: Options,
  warnings: readonly string[] = [],
): { readonly config: Config; readonly logger: Logger } {
  const config = completeOptions(options)
  const logger = createLogger(config.logLevel)
  for (const warning of warnings) logger.warn(warning)
  return { config, logger }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8')
}

/** Resolves at the first SIGINT or SIGTERM; the next one, of either kind, ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  const signals = ['SIGINT', 'SIGTERM'] as const
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      for (const each of signals) process.off(each, stop)
      resolve(signal)
    }
    for (const signal of signals) process.on(signal, stop)
  })
}

export function report(line: string): void {
  process.stderr.write(`${line}\n`)
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
