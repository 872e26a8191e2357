/**
 * Reads a record back. Its files may come from anybody: sizes are bounded, names are checked, and so are the hashes.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { Value } from 'typebox/value'
import { MillraceError } from '../../errors.ts'
import type { Exchange } from '../exchange.ts'
import { BODIES_FOLDER, INDEX_FILE, RecordedExchange, RecordHead } from './record-format.ts'

const MAX_LINE_BYTES = 256 * 1024
const MAX_LINES = 1_000_000
const MAX_BODY_BYTES = 64 * 1024 * 1024

export interface Replay {
  /** As recorded, without credentials. */
  readonly url: string
  readonly exchanges: AsyncIterable<Exchange>
}

/** @throws {MillraceError} `RECORD_INVALID`, also while the exchanges are read */
export async function openReplay(folder: string): Promise<Replay> {
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
    const actual = createHash('sha256').update(body).digest('hex')
    if (actual !== hash) throw invalid(`body ${hash} has other bytes than were recorded`)
    return body
  } finally {
    await handle.close()
  }
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
