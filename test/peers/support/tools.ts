/**
 * Checks for programs that a test needs. If one is missing, the test is skipped with a message, or fails with `CI=true`,
 * so that CI skips no test.
 *
 * @module
 */
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { requireNothingOf, type Verdicts } from '../../support/addresses.ts'

/** Whether all programs are on the PATH; skips or fails `t` otherwise. Return from the test when it is false. */
export function requireTool(t: Verdicts, ...names: string[]): boolean {
  return requireNothingOf(
    t,
    names.filter((name) => !isOnPath(name)),
  )
}

/** Whether all files exist, such as the headers of a library; skips or fails `t` otherwise. */
export function requireFile(t: Verdicts, ...paths: string[]): boolean {
  return requireNothingOf(
    t,
    paths.filter((path) => !existsSync(path)),
  )
}

function isOnPath(name: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
