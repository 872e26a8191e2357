/**
 * Servers that the HTTP bench compares.
 *
 * @module
 */
import type { FileName } from './scenarios.ts'

export interface Contender {
  /** Name in tables and flags, such as `millrace`, `millrace-2` (workers) and `nginx`. */
  readonly name: string
  /** Without a slash at the end. */
  readonly origin: string
  readonly paths: Readonly<Record<FileName, string>>
  /** First process. It and what it starts count as one server. */
  readonly pid: number
  stop(): Promise<void>
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
}
