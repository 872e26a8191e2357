/**
 * Reads a transport stream file, once or for ever, as datagrams with the moment at which each shall be sent.
 *
 * @module
 */
import { createReadStream } from 'node:fs'
import { MillraceError } from '../errors.ts'
import { PacedStream, type Datagram } from './paced-stream.ts'

const CHUNK_BYTES = 64 * 1024

/** What is read of a file before it counts as no transport stream. */
const MAX_PROBE_BYTES = 1024 * 1024

/** Path, URL or bytes of a transport stream. */
export type MediaFile = string | URL | Buffer

/**
 * @param options.loop  starts over at the end, times and counters going on; then it never ends
 * @yields in order, a few at a time; only what was asked for is read
 * @throws {MillraceError} `MEDIA_INVALID` where the file cannot be read, is no transport stream or tells no time
 */
export async function* readDatagrams(
  file: MediaFile,
  { loop }: { readonly loop: boolean },
): AsyncGenerator<Datagram[], void, undefined> {
  const stream = new PacedStream()
  for (;;) {
    let readBytes = 0
    for await (const chunk of readChunks(file)) {
      yield stream.push(chunk)
      readBytes += chunk.length
      if (readBytes >= MAX_PROBE_BYTES && stream.packets === 0) break
    }
    yield loop ? stream.rewind() : stream.end()
    if (stream.packets === 0) {
      throw new MillraceError('MEDIA_INVALID', {
        message: `the file is no MPEG transport stream: no packets in its first ${readBytes} bytes`,
      })
    }
    if (!loop) return
  }
}

async function* readChunks(file: MediaFile): AsyncGenerator<Buffer, void, undefined> {
  if (Buffer.isBuffer(file)) {
    for (let at = 0; at < file.length; at += CHUNK_BYTES) yield file.subarray(at, at + CHUNK_BYTES)
    return
  }
  try {
    yield* createReadStream(file, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new MillraceError('MEDIA_INVALID', {
      message: `the file cannot be read: ${(cause as Error).message}`,
      cause,
    })
  }
}
