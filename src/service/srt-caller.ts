/**
 * Calls of SRT listeners of others, for pull and push: at the addresses that PULL_ALLOW allows.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import { isForbidden, type AllowList } from '../outbound/address-rules.ts'
import { findAllowed, LookUp, type LookUpOptions } from '../outbound/look-up.ts'
import {
  connect,
  MAX_LATENCY_MS,
  parseSrtUrl,
  SrtError,
  type Caller,
  type ConnectOptions,
  type SrtUrl,
} from '../srt/index.ts'
import { systemClock } from '../timing/clock.ts'

/** Addresses of a name that one call tries. */
const MAX_ADDRESSES = 4

interface SrtCallerOptions extends Pick<LookUpOptions, 'createResolver'> {
  /** Parsed `PULL_ALLOW`. */
  readonly allowed: AllowList
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

export class SrtCaller {
  readonly #options: SrtCallerOptions
  readonly #lookUp: LookUp

  constructor(options: SrtCallerOptions) {
    this.#options = options
    this.#lookUp = new LookUp({ clock: systemClock, createResolver: options.createResolver })
  }

  /**
   * Checks the URL of a request.
   *
   * @param name  of the field, for the message
   * @throws {MillraceError} `BODY_INVALID` for a URL that is malformed, or forbidden no matter what a look-up returns
   */
  check(name: string, url: string): void {
    const { host, latencyMs = 0 } = parse(name, url)
    if (latencyMs > MAX_LATENCY_MS) throw invalid(name, `latency is above ${MAX_LATENCY_MS}`)
    if (!isForbidden(this.#options.allowed, host)) return
    throw invalid(
      name,
      'it leads to a link-local, metadata or multicast address, or beyond PULL_ALLOW',
    )
  }

  /**
   * @param options.signal  aborts the call
   * @throws {MillraceError} with a message for operators
   */
  async call(
    { host, ...target }: SrtUrl,
    options: Omit<ConnectOptions, 'host' | 'port' | 'streamId'> = {},
  ): Promise<Caller> {
    const { allowed, onWarning } = this.#options
    // They are numeric: no second look-up can lead elsewhere.
    const connectTo = (address: string) =>
      connect({ onWarning, ...options, ...target, host: address })
    try {
      const addresses = await findAllowed(this.#lookUp, allowed, host)
      return await firstAnswer(addresses.slice(0, MAX_ADDRESSES), connectTo)
    } catch (cause) {
      throw explainCall(cause, host)
    }
  }

  close(): void {
    this.#lookUp.close()
  }
}

/** Tries one address after the other. A refusal is final. */
async function firstAnswer(
  [address = '', ...others]: string[],
  connectTo: (address: string) => Promise<Caller>,
): Promise<Caller> {
  try {
    return await connectTo(address)
  } catch (error) {
    const isRefusal = error instanceof SrtError && error.code === 'SRT_REJECTED'
    if (isRefusal || others.length === 0) throw error
    return firstAnswer(others, connectTo)
  }
}

/** Wraps errors of SRT, and of the system: an unknown host, an unreachable network. */
export function explainCall(cause: unknown, host: string): MillraceError {
  if (cause instanceof SrtError) {
    return new MillraceError(cause.code, { message: cause.message, cause })
  }
  const { code, message: text } = cause as NodeJS.ErrnoException
  if (code === 'ADDRESS_FORBIDDEN') {
    const message = `${host} is at no address that PULL_ALLOW allows, or at a link-local or metadata address`
    return new MillraceError(code, { message, cause })
  }
  const message = `${host} cannot be reached (${code ?? text}): check host and network`
  return new MillraceError('SRT_TIMEOUT', { message, cause })
}

function parse(name: string, url: string): SrtUrl {
  try {
    return parseSrtUrl(url)
  } catch (error) {
    throw new MillraceError('BODY_INVALID', { message: `${name}: ${(error as Error).message}` })
  }
}

function invalid(name: string, reason: string): MillraceError {
  return new MillraceError('BODY_INVALID', { message: `${name}: ${reason}` })
}
