/**
 * Names of settings in messages. All messages are written with the names of the environment, which are distinct from words;
 * a program that uses the library reads its own names instead.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import { SETTINGS } from './setting-names.ts'

/** Rewrites a message for its reader. */
export type NameSettings = (message: string) => string

const OPTIONS = new Map(SETTINGS.map(({ env, path }) => [env, path.join('.')]))

/** Names variables of the environment, as messages are written. */
export const inVariableNames: NameSettings = (message) => message

/** Names options of the library, such as `srt.port`, in place of variables of the environment. */
export const inOptionNames: NameSettings = (message) =>
  message.replace(/\b[A-Z][A-Z_]+\b/g, (name) => OPTIONS.get(name) ?? name)

/** An error with its message rewritten; errors that are not for users stay as they are. */
export function renameIn(error: unknown, nameSettings: NameSettings): unknown {
  if (!(error instanceof MillraceError)) return error
  const { code, message, cause, retryAfterSec } = error
  return new MillraceError(code, { message: nameSettings(message), cause, retryAfterSec })
}
