/**
 * Exit after an uncaught error: one log line, ports closed, exit code 1. The state of the process is unknown, so
 * nothing else is attempted; a supervisor restarts it.
 *
 * For programs only: a library does not end the process of its user.
 *
 * @module
 */
import type { Logger } from '../logger.ts'

/** Time limit for closing the ports, in milliseconds. */
const CLOSE_TIMEOUT_MS = 500

const MAX_STACK_LENGTH = 4000

const LINE =
  'Uncaught error, exit 1. Encoders and viewers wait for the next process. Let a supervisor start it, and report the stack.'

interface FatalErrorOptions {
  readonly logger: Logger
  /** Texts to remove from the log line. */
  readonly secrets: ReadonlySet<string>
  /** Closes the ports. */
  readonly abandon: () => Promise<unknown>
}

/** Handles uncaught exceptions and unhandled rejections for the life of the process. */
export function exitOnFatalErrors({ logger, secrets, abandon }: FatalErrorOptions): void {
  // Includes unhandled rejections.
  process.once('uncaughtException', (error: unknown) => {
    // Exits at once on a second error, and after the time limit if the ports do not close.
    process.on('uncaughtException', exit)
    setTimeout(exit, CLOSE_TIMEOUT_MS)
    logger.fatal({ stack: describe(error, secrets) }, LINE)
    void closePorts(abandon)
  })
}

async function closePorts(abandon: () => Promise<unknown>): Promise<void> {
  await abandon().catch(() => undefined)
  exit()
}

function exit(): void {
  process.exit(1)
}

function describe(error: unknown, secrets: ReadonlySet<string>): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return redact(text, secrets).slice(0, MAX_STACK_LENGTH)
}

/** Replaces secrets, JWTs, and values of `token=` and `passphrase=`. */
function redact(text: string, secrets: ReadonlySet<string>): string {
  return [...secrets]
    .filter((secret) => secret !== '')
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
    .replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '…')
    .replaceAll(/\b(token|passphrase)=[^,&\s]+/g, '$1=…')
}
