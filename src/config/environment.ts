/**
 * Options from environment variables, command-line flags and files of secrets. Callers pass all of them in: only
 * `commands/` reads `process.env` and files.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { MillraceError } from '../errors.ts'
import type { Options } from './schema.ts'
import { SETTINGS, type Setting } from './settings.ts'
import { writeSetting } from './setting-path.ts'

type Texts = Readonly<Record<string, string | undefined>>

/**
 * Reads options by their names in the environment and as flags. A flag wins over a variable; an empty variable counts
 * as not set.
 *
 * @param flags  values by flag name, see `parseFlags`
 * @param readFile  reads the text of a file, for settings that are in one
 * @throws {MillraceError} `CONFIG_INVALID` for a setting that is given twice, or a file that has no text
 */
export function readOptions(
  env: Texts,
  flags: Texts,
  readFile: (path: string) => string = unreadable,
): Partial<Options> {
  const options: Record<string, unknown> = {}
  for (const setting of SETTINGS) {
    const text = textOf(setting, env, flags, readFile)
    if (text !== undefined) writeSetting(options, setting.path, fromText(text, setting.schema))
  }
  return options
}

/**
 * Parses command-line arguments into the values of flags, of settings and of the command, and positional arguments.
 *
 * @param commandFlags  flags of the command besides the settings
 */
export function parseFlags(
  args: readonly string[],
  commandFlags: Record<string, { type: 'boolean' | 'string' }> = {},
) {
  const settings = Object.fromEntries(
    SETTINGS.flatMap(({ flag, hasFile }) => (hasFile ? [flag, `${flag}-file`] : [flag])).map(
      (flag) => [flag, { type: 'string' as const }],
    ),
  )
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { ...settings, ...commandFlags },
    allowPositionals: true,
  })
  return { values: values as Record<string, string | undefined>, positionals }
}

/** Warnings about secrets given as flags. */
export function flagWarnings(flags: Texts): string[] {
  return SETTINGS.filter(({ flag, schema }) => schema.secret === true && flags[flag]).map(
    ({ env, flag }) =>
      `--${flag} is a secret. Users of this machine read it in the list of processes. Set ${env} in the environment, or ${env}_FILE.`,
  )
}

function textOf(
  { env: name, flag, hasFile }: Setting,
  env: Texts,
  flags: Texts,
  readFile: (path: string) => string,
): string | undefined {
  const text = flags[flag] ?? (env[name] === '' ? undefined : env[name])
  const path = hasFile ? (flags[`${flag}-file`] ?? env[`${name}_FILE`] ?? '') : ''
  if (path === '') return text
  if (text !== undefined) {
    const message = `${name} and ${name}_FILE are both set: expected one of them`
    throw new MillraceError('CONFIG_INVALID', { message })
  }
  return readText(name, path, readFile)
}

/** Text of a file without the newlines at its end. */
function readText(name: string, path: string, readFile: (path: string) => string): string {
  const refusal = (problem: string, cause?: unknown) =>
    new MillraceError('CONFIG_INVALID', {
      message: `${name}_FILE is ${path}: expected ${problem}`,
      cause,
    })
  try {
    const text = readFile(path).replace(/[\r\n]+$/, '')
    // An empty secret would turn off what it protects.
    if (text === '') throw refusal('a file with a value, but it is empty')
    if (/\p{Cc}/u.test(text)) throw refusal('one line without control characters')
    return text
  } catch (error) {
    if (error instanceof MillraceError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw refusal(`a file that this process can read (${code})`, error)
  }
}

function unreadable(): never {
  throw Object.assign(new Error('files are not read here'), { code: 'ENOENT' })
}

/** Parses the text of a setting. Text that does not match the type stays a string, which `completeOptions` refuses. */
function fromText(text: string, { type }: Setting['schema']): unknown {
  if (type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  const isNumber = type === 'integer' || type === 'number'
  return isNumber && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
