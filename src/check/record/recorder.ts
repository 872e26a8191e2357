/**
 * Writes the exchanges of a check to a folder.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { MillraceError } from '../../errors.ts'
import type { Exchange } from '../exchange.ts'
import { BODIES_FOLDER, INDEX_FILE, MAX_RECORD_BYTES, RECORD_VERSION } from './record-format.ts'
import type { RecordedExchange, RecordHead } from './record-format.ts'

/** Inputs: `push` each exchange, `close` once. Exchanges have no credentials. */
export class Recorder {
  readonly #bodies: string
  readonly #index: number
  readonly #written = new Set<string>()
  readonly #maxBytes: number
  #bytes = 0
  #dropped = 0

  /**
   * @param folder  is created; must have no record yet
   * @param url  of the stream, without credentials
   * @throws {MillraceError} `RECORD_INVALID` if the folder cannot be written
   */
  constructor(folder: string, url: string, maxBytes = MAX_RECORD_BYTES) {
    this.#maxBytes = maxBytes
    this.#bodies = join(folder, BODIES_FOLDER)
    const head: RecordHead = { format: 'millrace-check', version: RECORD_VERSION, url }
    try {
      mkdirSync(this.#bodies, { recursive: true })
      this.#index = openSync(join(folder, INDEX_FILE), 'wx')
    } catch (cause) {
      const isTaken = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
      const message = isTaken ? `${folder} has a record already` : `cannot write to ${folder}`
      throw new MillraceError('RECORD_INVALID', { message, cause })
    }
    this.#writeLine(head)
  }

  /** Number of exchanges that the full record lacks. */
  get dropped(): number {
    return this.#dropped
  }

  push({ reply, ...request }: Exchange): void {
    if (reply === undefined) return this.#writeLine(request)
    const { body, ...rest } = reply
    const hash = createHash('sha256').update(body).digest('hex')
    if (!this.#written.has(hash)) this.#bytes += body.length
    if (this.#bytes > this.#maxBytes) {
      this.#dropped++
      return
    }
    if (!this.#written.has(hash)) writeFileSync(join(this.#bodies, hash), body)
    this.#written.add(hash)
    const line: RecordedExchange = { ...request, reply: { ...rest, body: hash } }
    this.#writeLine(line)
  }

  close(): void {
    closeSync(this.#index)
  }

  #writeLine(line: object): void {
    writeSync(this.#index, `${JSON.stringify(line)}\n`)
  }
}
