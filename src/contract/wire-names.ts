/**
 * Records as they leave the process: the API and webhooks write `playlist_url` where the library says `playlistUrl`.
 *
 * @module
 */

/** The same value with the wire's names: `playlistUrl` -> `playlist_url`. Dates turn to ISO 8601 in JSON. */
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
