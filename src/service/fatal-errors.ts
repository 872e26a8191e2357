/**
 * The end of the process after an error that nobody caught: one line in the log, ports closed, exit code 1. What state it
 * left behind is unknown, so nothing else is tried; whoever supervises the process starts it again.
 *
 * For programs only: a library does not decide about the process of its user.
 *
 * @module
 */
import type { Logger } from '../logger.ts'

/** How long closing the ports may take. */
const CLOSE_TIMEOUT_MS = 500

const MAX_STACK_LENGTH = 4000

export interface FatalErrorOptions {
  readonly logger: Logger
  /** Never logged, whatever an error says. */
  readonly secrets: readonly string[]
  /** Closes the ports. */
  readonly abandon: () => Promise<unknown>
}

/** Takes exceptions and rejections that nobody caught, for the life of the process. */
export function exitOnFatalErrors({ logger, secrets, abandon }: FatalErrorOptions): void {
  // A rejection that nobody handles arrives here as well.
  process.once('uncaughtException', (error: unknown) => {
    // Another error on the way out, or ports that do not close, change nothing.
    process.on('uncaughtException', exit)
    setTimeout(exit, CLOSE_TIMEOUT_MS)
    logger.fatal(
      { stack: describe(error, secrets) },
      'an error that nobody caught: closing the ports, exit 1',
    )
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

function describe(error: unknown, secrets: readonly string[]): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return redact(text, secrets).slice(0, MAX_STACK_LENGTH)
}

/** Settings that are secret, and whatever looks like a stream key or a passphrase in a URL. */
function redact(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== '')
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
    .replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '…')
    .replaceAll(/\b(token|passphrase)=[^,&\s]+/g, '$1=…')
}
