/**
 * Record of a check: an index of its exchanges in JSON lines, and bodies named by their SHA-256.
 *
 * ```
 * DIR/exchanges.jsonl   first line: the check; then an exchange a line, in the order in which the judge saw them
 * DIR/bodies/{sha256}
 * ```
 *
 * A record may come from anybody: its reader bounds sizes, and checks names and hashes.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  createReadStream,
  mkdirSync,
  openSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { MillraceError } from '../errors.ts'
import { ROLES, type Exchange, type RequestRole } from './exchange.ts'

const INDEX_FILE = 'exchanges.jsonl'
const BODIES_FOLDER = 'bodies'
const RECORD_VERSION = 1

/** Maximum size of the bodies of a record; later exchanges are dropped. */
export const MAX_RECORD_BYTES = 2 * 1024 ** 3

/** Limits of what is read back. */
const MAX_LINE_BYTES = 256 * 1024
const MAX_LINES = 1_000_000
const MAX_BODY_BYTES = 64 * 1024 * 1024

const Time = Type.Number({ minimum: 0, maximum: 1e14 })
const Headers = Type.Record(Type.String({ maxLength: 256 }), Type.String({ maxLength: 16_384 }))
const Url = Type.String({ pattern: '^https?://', maxLength: 16_384 })

/** First line of the index. */
const RecordHead = Type.Object({
  format: Type.Literal('millrace-check'),
  version: Type.Literal(RECORD_VERSION),
  url: Url,
})
type RecordHead = Static<typeof RecordHead>

/** Exchange whose body is a file. */
const RecordedExchange = Type.Object({
  role: Type.Unsafe<RequestRole>(Type.Union(ROLES.map((role) => Type.Literal(role)))),
  method: Type.Union([Type.Literal('GET'), Type.Literal('HEAD'), Type.Literal('OPTIONS')]),
  url: Url,
  playlistUrl: Type.Optional(Url),
  headers: Headers,
  sentAtMs: Time,
  failure: Type.Optional(Type.String({ maxLength: 1024 })),
  reply: Type.Optional(
    Type.Object({
      status: Type.Integer({ minimum: 100, maximum: 999 }),
      headers: Headers,
      url: Url,
      protocol: Type.Union([Type.Literal('http/1.1'), Type.Literal('h2')]),
      encodedBytes: Type.Optional(Type.Integer({ minimum: 0 })),
      headersAtMs: Time,
      endedAtMs: Time,
      longestPauseMs: Type.Number({ minimum: 0 }),
      /** SHA-256 of the body in hexadecimal: its file name, which can name no other folder. */
      body: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    }),
  ),
})
type RecordedExchange = Static<typeof RecordedExchange>

/** Writes a record. Inputs: `push` each exchange, without credentials; `close` once. */
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
    const hash = sha256(body)
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

/**
 * Reads a record back.
 *
 * @returns URL of the stream, without credentials, and the exchanges in the order of the record
 * @throws {MillraceError} `RECORD_INVALID`, also while the exchanges are read
 */
export async function openReplay(
  folder: string,
): Promise<{ readonly url: string; readonly exchanges: AsyncIterable<Exchange> }> {
  const lines = readLines(join(folder, INDEX_FILE))
  const { value: first } = await lines.next()
  const head: unknown = parse(first ?? '', 1)
  if (!Value.Check(RecordHead, head)) throw invalid('line 1 is no head of a record')
  return { url: head.url, exchanges: readExchanges(folder, lines) }
}

async function* readExchanges(folder: string, lines: AsyncIterable<string>) {
  let number = 1
  for await (const line of lines) {
    if (++number > MAX_LINES) throw invalid(`more than ${MAX_LINES} lines`)
    const recorded: unknown = parse(line, number)
    if (!Value.Check(RecordedExchange, recorded)) throw invalid(`line ${number} is no exchange`)
    const { reply, ...request } = recorded
    if (reply === undefined) yield request as Exchange
    else {
      const body = await readBody(join(folder, BODIES_FOLDER, reply.body), reply.body)
      yield { ...request, reply: { ...reply, body } } as Exchange
    }
  }
}

async function* readLines(file: string): AsyncGenerator<string, undefined> {
  let rest = ''
  try {
    for await (const chunk of createReadStream(file, { encoding: 'utf8' })) {
      const lines = (rest + (chunk as string)).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
      if (rest.length > MAX_LINE_BYTES) throw invalid(`a line exceeds ${MAX_LINE_BYTES} bytes`)
    }
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause
    throw invalid(`cannot read ${file}`, cause)
  }
  // The last line has no end if the check was killed.
  return undefined
}

async function readBody(file: string, hash: string): Promise<Buffer> {
  const handle = await open(
    file,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  ).catch((cause: unknown) => {
    throw invalid(`body ${hash} is missing`, cause)
  })
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw invalid(`body ${hash} is no file`)
    if (stats.size > MAX_BODY_BYTES) throw invalid(`body ${hash} is larger than 64 MiB`)
    const body = await handle.readFile()
    if (sha256(body) !== hash) throw invalid(`body ${hash} has other bytes than were recorded`)
    return body
  } finally {
    await handle.close()
  }
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function parse(line: string, number: number): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw invalid(`line ${number} is no JSON`, cause)
  }
}

function invalid(message: string, cause?: unknown): MillraceError {
  return new MillraceError('RECORD_INVALID', { message: `record: ${message}`, cause })
}
