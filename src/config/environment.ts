/**
 * Settings from environment variables, command-line flags and files of secrets. Callers pass all of them in: only
 * `cli/` reads `process.env` and files. The settings themselves stand in `schema.ts`.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import type { GivenSettings } from './schema.ts'
import { problemWith, SETTINGS, writeSetting, type Setting } from './setting-names.ts'

type Texts = Readonly<Record<string, string | undefined>>

/** Values by the names of flags, such as `http-port`. */
export type Flags = Texts

/**
 * Reads settings by their names in the environment and as flags. A flag wins over a variable; an empty variable counts
 * as not set.
 *
 * @param flags  values by flag name, see `parseFlags`
 * @param readFile  reads the text of a file, for settings that are in one
 * @param onProblem  receives settings that are left out since they are given twice, are in a file that cannot be read, or
 *   are secrets too short for the program; default: throws the first one
 */
export function readSettings(
  env: Texts,
  flags: Flags,
  readFile: (path: string) => string = unreadable,
  onProblem: (setting: Setting, error: MillraceError) => void = rethrow,
): Partial<GivenSettings> {
  const settings: Record<string, unknown> = {}
  for (const setting of SETTINGS) {
    const { path, schema } = setting
    try {
      const text = textOf(setting, env, flags, readFile)
      if (text === undefined) continue
      if (schema.isLong?.(text) === false) throw refusal(problemWith(setting, text))
      writeSetting(settings, path, fromText(text, schema))
    } catch (error) {
      onProblem(setting, error as MillraceError)
    }
  }
  return settings
}

function rethrow(_setting: Setting, error: MillraceError): never {
  throw error
}

function refusal(message: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', { message, cause })
}

/** Warnings about secrets given as flags. */
export function flagWarnings(flags: Flags): string[] {
  return SETTINGS.filter(({ flag, schema }) => schema.secret === true && flags[flag]).map(
    ({ env, flag }) =>
      `--${flag} is a secret. All users of this machine see it. Set ${env} in the environment, or ${env}_FILE.`,
  )
}

function textOf(
  { env: name, flag, hasFile }: Setting,
  env: Texts,
  flags: Flags,
  readFile: (path: string) => string,
): string | undefined {
  const text = flags[flag] ?? (env[name] === '' ? undefined : env[name])
  const path = hasFile ? (flags[`${flag}-file`] ?? env[`${name}_FILE`] ?? '') : ''
  if (path === '') return text
  if (text !== undefined) {
    throw refusal(`${name} and ${name}_FILE are both set: expected one of them`)
  }
  return readText(name, path, readFile)
}

/** Text of a file without the newlines at its end. */
function readText(name: string, path: string, readFile: (path: string) => string): string {
  const unusable = (problem: string, cause?: unknown) =>
    refusal(`${name}_FILE is ${path}: expected ${problem}`, cause)
  try {
    const text = readFile(path).replace(/[\r\n]+$/, '')
    // An empty secret would turn off what it protects.
    if (text === '') throw unusable('a file with a value, but it is empty')
    if (/\p{Cc}/u.test(text)) throw unusable('one line without control characters')
    return text
  } catch (error) {
    if (error instanceof MillraceError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw unusable(`a file that this process can read (${code})`, error)
  }
}

function unreadable(): never {
  throw Object.assign(new Error('files are not read here'), { code: 'ENOENT' })
}

/** Parses the text of a setting. Text that does not match the type stays a string, which `completeSettings` refuses. */
function fromText(text: string, { type }: Setting['schema']): unknown {
  if (type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  const isNumber = type === 'integer' || type === 'number'
  return isNumber && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
