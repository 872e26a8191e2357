/**
 * Transport stream files as datagrams with their sending times, once or in a loop.
 *
 * @module
 */
import { createReadStream } from 'node:fs'
import { MillraceError } from '../../errors.ts'
import { PacedStream, type PacedDatagram } from '../../pace/paced-stream.ts'

const CHUNK_BYTES = 64 * 1024

/** Number of bytes read before a file without packets is rejected. */
const MAX_PROBE_BYTES = 1024 * 1024

/** Path, URL or bytes of a transport stream. */
export type MediaFile = string | URL | Buffer

/**
 * @param options.loop  whether to start over at the end of the file, with continuous timestamps and counters; the
 *   generator then never ends
 * @yields datagrams in order, a few at a time; the file is read on demand
 * @throws {MillraceError} `MEDIA_INVALID` if the file cannot be read, is no transport stream, or lacks timestamps
 *   for 10 MiB
 */
export async function* readDatagrams(
  file: MediaFile,
  { loop }: { readonly loop: boolean },
): AsyncGenerator<PacedDatagram[], void, undefined> {
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
        message: `the file is no MPEG transport stream: no packets in its first ${readBytes} bytes; make one (ffmpeg -i FILE -c copy out.ts)`,
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
