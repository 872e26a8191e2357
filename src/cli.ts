#!/usr/bin/env node
/**
 * Command line: runs a command of the program, and makes an exit code of its end.
 *
 * @module
 */
import { inspect } from 'node:util'
import { CommanderError } from 'commander'
import { createProgram } from './cli/program.ts'
import { report, reportMisspelt } from './cli/terminal.ts'
import { MillraceError } from './errors.ts'

/** Exit code for mistakes of the user, as opposed to failures. */
const EXIT_USAGE = 2

/** Codes of an invalid argument, setting or media file. */
const MISTAKES = new Set<string>(['USAGE', 'CONFIG_INVALID', 'MEDIA_INVALID', 'RECORD_INVALID'])

// A closed pipe must not end the service; pino handles errors of its own writes.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

createProgram()
  .parseAsync()
  .catch((error: unknown) => {
    if (error instanceof CommanderError) {
      // Its message has been printed. Help and version end with an error too.
      process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE
      return
    }
    const isExpected = error instanceof MillraceError
    report(`millrace: ${isExpected ? error.message : inspect(error)}`)
    if (isExpected && error.code === 'CONFIG_INVALID') reportMisspelt()
    process.exitCode = isExpected && MISTAKES.has(error.code) ? EXIT_USAGE : 1
  })
