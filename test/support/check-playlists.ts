/**
 * Checks every version of a playlist with m3u8-parser and with the rules of RFC 8216bis over time.
 *
 * @module
 */
import { parseM3u8 } from './m3u8.ts'
import { PlaylistRules } from './playlist-rules.ts'

/** @returns what is wrong, each with the version that it is wrong in; empty where all is right */
export function checkPlaylists(versions: readonly string[]): string[] {
  const rules = new PlaylistRules()
  return versions.flatMap((text, index) =>
    [...parseM3u8(text).complaints, ...rules.check(text)].map(
      (complaint) => `version ${index}: ${complaint}`,
    ),
  )
}
