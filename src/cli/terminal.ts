/**
 * What commands share: settings and logger from the command line, signals, output.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { flagWarnings, readSettings, type Flags } from '../config/environment.ts'
import { misspeltWarnings } from '../config/misspelt-variables.ts'
import { completeSettings } from '../config/complete-settings.ts'
import type { Config, GivenSettings } from '../config/schema.ts'
import { parseSecrets } from '../config/setting-types.ts'
import { MillraceError } from '../errors.ts'
import { openLogger, type Logger } from '../logger.ts'

/** @throws {MillraceError} `CONFIG_INVALID` for the first setting that cannot be read */
export function givenSettings(flags: Flags): Partial<GivenSettings> {
  return readSettings(process.env, flags, readText)
}

/**
 * The newest `HMAC_SECRET`, for a command that signs calls; warns of one in a flag.
 *
 * @throws {MillraceError} `CONFIG_INVALID` without one
 */
export function givenHmacSecret(flags: Flags): string {
  flagWarnings(flags).forEach(report)
  const { hmacSecret } = givenSettings(flags)
  if (hmacSecret === undefined) {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'HMAC_SECRET is not set: expected that of the service, from its file of settings',
    })
  }
  return parseSecrets(hmacSecret)[0]
}

/**
 * @param complete  adds what the command sets itself
 * @throws {MillraceError} `CONFIG_INVALID` with all wrong settings
 */
export function readConfig(
  flags: Flags,
  complete: (settings: Partial<GivenSettings>) => Partial<GivenSettings> = (settings) => settings,
): Config {
  const unreadable = new Map<string, string>()
  const settings = readSettings(process.env, flags, readText, ({ env }, { message }) =>
    unreadable.set(env, message),
  )
  // Missing secrets are refused with the name of the command that makes them.
  return completeSettings(complete(settings) as GivenSettings, undefined, unreadable)
}

/** Secrets for a program that no client signs requests to. */
export function throwAwaySecrets(): Pick<GivenSettings, 'hmacSecret' | 'jwtSecret'> {
  const [hmacSecret, jwtSecret] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  return { hmacSecret, jwtSecret }
}

/** Reports variables that look misspelt, without which a setting is missing or wrong. */
export function reportMisspelt(): void {
  for (const warning of misspeltWarnings(process.env)) report(warning)
}

/** Logger of a command, which first warns of secrets in flags and of variables that look misspelt. */
export function openLog(config: Config, flags: Flags): Logger {
  const logger = openLogger(config)
  const warnings = [...flagWarnings(flags), ...misspeltWarnings(process.env)]
  for (const warning of warnings) logger.warn(warning)
  return logger
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
