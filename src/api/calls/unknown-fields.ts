/**
 * Fields of a request that its call does not have. They have no effect, so that clients may be newer than the service; the
 * answer names them, since most of them are misspelt.
 *
 * @module
 */
import { isSlip } from '../slip.ts'
import { BODIES } from './bodies.ts'
import type { EndpointName } from '../endpoints.ts'

/** A body of 64 KiB has room for thousands of fields. */
const MAX_WARNINGS = 8
const MAX_NAME_CHARACTERS = 60

/** @returns a sentence for each of the first fields of `body` that the call does not have */
export function unknownFieldWarnings(
  call: EndpointName,
  body: Readonly<Record<string, unknown>>,
): string[] {
  const { properties } = BODIES[call]
  const missing = Object.keys(properties).filter((name) => !Object.hasOwn(body, name))
  return Object.keys(body)
    .filter((name) => !Object.hasOwn(properties, name))
    .slice(0, MAX_WARNINGS)
    .map((name) => {
      // A name may fill the body: no more of it is looked at than is shown.
      const shown = name.slice(0, MAX_NAME_CHARACTERS).replaceAll(/\p{Cs}/gu, '\ufffd')
      const word = letters(shown)
      const similar = missing.filter((each) => isSlip(word, letters(each)))
      const meant = similar.find((each) => letters(each).startsWith(word)) ?? similar[0]
      const advice = meant === undefined ? '' : ` Did you mean ${meant}?`
      return `${shown} is no field of ${call}, and has no effect.${advice}`
    })
}

/** A name without what clients write in different ways: `webhookUrls` is `webhook_urls`. */
function letters(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase()
}
