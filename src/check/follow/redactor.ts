/**
 * Removes credentials from URLs and playlists: user names and passwords, playback tokens of
 * Millrace in the path, and long query values, which may be tokens.
 *
 * A value is replaced by a keyed hash, so that equal values stay equal and different ones different, within one check.
 *
 * @module
 */
import { createHmac, randomBytes } from 'node:crypto'

/** Shortest query value that is replaced. Names as below are replaced at any length. */
const MIN_TOKEN_CHARACTERS = 12

const SECRET_NAME =
  /auth|hash|hdn|hmac|jwt|key|pass|policy|secret|sess|sign?$|signature|token|user/i

export class Redactor {
  readonly #key = randomBytes(32)

  /** @param text  a URL, or a playlist; line breaks stay */
  redact(text: string): string {
    return text
      .replace(/(\bhttps?:\/\/)[^/?#\s"@]*@/gi, '$1')
      .replace(
        /(\/t\/)(\d+(?:\.ip)?\.[\w-]{43})(?=\/)/g,
        (_match, before: string, token: string) => {
          return `${before}~${this.#hash(token)}`
        },
      )
      .replace(/([?&])([^=&"\s?#]+)=([^&"\s#]*)/g, (match, mark, name: string, value: string) => {
        if (name.startsWith('_HLS_') || value === '') return match
        const isSecret = value.length >= MIN_TOKEN_CHARACTERS || SECRET_NAME.test(name)
        return isSecret ? `${mark}${name}=~${this.#hash(value)}` : match
      })
  }

  #hash(value: string): string {
    return createHmac('sha256', this.#key).update(value).digest('hex').slice(0, 8)
  }
}
