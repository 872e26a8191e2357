/**
 * Files of `TLS_CERT` and `TLS_KEY`: read at the start, and again when their contents change.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Logger } from '../../logger.ts'
import {
  invalid,
  parseCertificate,
  type Certificate,
  type CertificateFiles,
  type CertificatePaths,
} from './certificate.ts'

/**
 * Interval at which the files are read. Comparing contents holds for every way of replacing them: in place, by a
 * rename, or by the symbolic links of Kubernetes, which a watch of the file would lose.
 */
const POLL_MS = 5000

/** Contents of both files, or the reason why one cannot be read. */
type Reading = CertificateFiles | Error

interface FollowOptions {
  /** Called with each new certificate. */
  readonly onChange: (certificate: Certificate) => void
  readonly logger: Logger
  readonly pollMs?: number
}

/** Calling order: `read`, then `follow` once, then `reload` at any time. */
export class CertificateSource {
  readonly #paths: CertificatePaths
  /** Reading whose certificate is in use. */
  #used: Reading | undefined
  /** Latest reading. */
  #latest: Reading | undefined
  /** Passes a new certificate to the caller of `follow`. */
  #use: ((certificate: Certificate) => void) | undefined
  /** Latest reading that was tried, in use or not. */
  #tried: Reading | undefined

  constructor(paths: CertificatePaths) {
    this.#paths = paths
  }

  /** @throws {MillraceError} `CONFIG_INVALID` with the setting and the problem */
  read(): Certificate {
    const files = {
      cert: this.#readNow('TLS_CERT', this.#paths.cert),
      key: this.#readNow('TLS_KEY', this.#paths.key),
    }
    const certificate = parseCertificate(files, this.#paths)
    this.#used = this.#latest = this.#tried = files
    return certificate
  }

  /**
   * Reads the files at intervals. A certificate that cannot be used is logged, and the one in use stays.
   *
   * @returns function that ends it
   */
  follow({ onChange, logger, pollMs = POLL_MS }: FollowOptions): () => void {
    this.#use = (certificate) => {
      onChange(certificate)
      logger.info({ expires_at: certificate.expiresAt }, 'new TLS certificate in use')
    }
    const poll = async () => {
      const reading = await this.#poll()
      if (reading === undefined) return
      try {
        if (reading instanceof Error) throw reading
        this.#use?.(parseCertificate(reading, this.#paths))
        this.#used = reading
      } catch (error) {
        logger.error(
          `The new TLS certificate cannot be used: ${(error as Error).message}. Viewers get the old one.`,
        )
      }
    }
    const timer = setInterval(() => void poll(), pollMs).unref()
    return () => clearInterval(timer)
  }

  /**
   * Reads the files again and uses them at once, for a caller who knows that both are complete.
   *
   * @throws {MillraceError} as `read`; the certificate in use stays
   */
  reload(): void {
    const used = this.#used
    const certificate = this.read()
    if (!isSame(this.#used, used)) this.#use?.(certificate)
  }

  /**
   * @returns new contents that two readings in a row have found, since certificate and key are replaced one after the
   *   other; undefined if there is nothing new
   */
  async #poll(): Promise<Reading | undefined> {
    const reading = await this.#readFiles()
    const isStable = isSame(reading, this.#latest)
    this.#latest = reading
    if (!isStable || isSame(reading, this.#tried)) return undefined
    this.#tried = reading
    return isSame(reading, this.#used) ? undefined : reading
  }

  async #readFiles(): Promise<Reading> {
    const { cert, key } = this.#paths
    const readings = await Promise.all([
      readFile(cert).catch((error: unknown) => unreadable('TLS_CERT', cert, error)),
      readFile(key).catch((error: unknown) => unreadable('TLS_KEY', key, error)),
    ])
    const [certReading, keyReading] = readings
    if (certReading instanceof Error) return certReading
    if (keyReading instanceof Error) return keyReading
    return { cert: certReading, key: keyReading }
  }

  #readNow(setting: 'TLS_CERT' | 'TLS_KEY', path: string): Buffer {
    try {
      return readFileSync(path)
    } catch (error) {
      throw unreadable(setting, path, error)
    }
  }
}

function unreadable(setting: 'TLS_CERT' | 'TLS_KEY', path: string, error: unknown): Error {
  return invalid(setting, path, 'a file that this process can read', error)
}

function isSame(a: Reading | undefined, b: Reading | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  if (a instanceof Error || b instanceof Error) {
    return a instanceof Error && b instanceof Error && a.message === b.message
  }
  return a.cert.equals(b.cert) && a.key.equals(b.key)
}
