/**
 * Names on the wire: the API and webhooks write `playlist_url` for `playlistUrl` of the library.
 *
 * @module
 */

/** @returns a copy with snake_case keys; `Date` objects stay as they are, since JSON writes them in ISO 8601 */
export function onTheWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(onTheWire)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      onTheWire(field),
    ]),
  )
}
