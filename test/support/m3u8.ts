/**
 * Playlists parsed by m3u8-parser.
 *
 * @module
 */
import { Parser } from 'm3u8-parser'

/** @returns the manifest, and as `complaints` all warnings of the parser */
export function parseM3u8(text: string): { manifest: Parser['manifest']; complaints: string[] } {
  const parser = new Parser()
  const complaints: string[] = []
  parser.on('warn', ({ message }) => complaints.push(message))
  parser.on('info', ({ message }) => complaints.push(message))
  parser.push(text)
  parser.end()
  return { manifest: parser.manifest, complaints }
}
