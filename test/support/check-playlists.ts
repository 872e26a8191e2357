/**
 * Checks every version of a playlist with m3u8-parser, the rules of `millrace check` and the house rules.
 *
 * @module
 */
import { parseM3u8 } from './m3u8.ts'
import { StreamJudge } from './stream-judge.ts'

/**
 * @param uri  of the playlist
 * @returns what is wrong, each with the version that it is wrong in; empty where all is right
 */
export function checkPlaylists(versions: readonly string[], uri = 'playlist.m3u8'): string[] {
  // ffmpeg's audio PES packets last 0.3 s: the part with the key frame may be out before audio comes.
  const judge = new StreamJudge({ except: ['INDEPENDENT_MISSING'] })
  return versions.flatMap((text, index) =>
    [...parseM3u8(text).complaints, ...judge.playlist(uri, text)].map(
      (complaint) => `version ${index}: ${complaint}`,
    ),
  )
}
