/**
 * Playlists as m3u8-parser understands them.
 *
 * @module
 */
import { Parser } from 'm3u8-parser'

/** @returns what it read, and everything it had to say: a playlist in order leaves `complaints` empty */
export function parseM3u8(text: string): { manifest: Parser['manifest']; complaints: string[] } {
  const parser = new Parser()
  const complaints: string[] = []
  parser.on('warn', ({ message }) => complaints.push(message))
  parser.on('info', ({ message }) => complaints.push(message))
  parser.push(text)
  parser.end()
  return { manifest: parser.manifest, complaints }
}
