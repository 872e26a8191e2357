/**
 * Options from environment variables and command-line flags. Callers pass both in: only `cli.ts` reads `process.env`.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { SETTINGS, type Options, type Setting } from './schema.ts'
import { writeSetting } from './setting-path.ts'

/**
 * Reads options by their names in the environment and as flags. A flag wins over a variable; an empty variable counts
 * as not set.
 *
 * @param flags  values by flag name, see `parseFlags`
 */
export function readOptions(
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>,
): Partial<Options> {
  const options: Record<string, unknown> = {}
  for (const { env: name, flag, path, schema } of SETTINGS) {
    const text = flags[flag] ?? (env[name] === '' ? undefined : env[name])
    if (text !== undefined) writeSetting(options, path, fromText(text, schema))
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
  commandFlags: Record<string, { type: 'boolean' }> = {},
) {
  const settings = Object.fromEntries(
    SETTINGS.map(({ flag }) => [flag, { type: 'string' as const }]),
  )
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { ...settings, ...commandFlags },
    allowPositionals: true,
  })
  return { values: values as Record<string, string | undefined>, positionals }
}

/** Parses the text of a setting. Text that does not match the type stays a string, which `completeOptions` refuses. */
function fromText(text: string, { type }: Setting['schema']): unknown {
  if (type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  const isNumber = type === 'integer' || type === 'number'
  return isNumber && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
