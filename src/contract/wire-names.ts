/**
 * Names on the wire: the API and webhooks write `playlist_url` for `playlistUrl` of the library.
 *
 * @module
 */

/** `value` with snake_case keys, as JSON has it. */
export type OnTheWire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? OnTheWire<Item>[]
    : T extends object
      ? { -readonly [Key in keyof T as SnakeCase<Key & string>]: OnTheWire<T[Key]> }
      : T

/** Fields of a request under the names of the library. */
export type OffTheWire<T> = { [Key in keyof T as CamelCase<Key & string>]: T[Key] }

type SnakeCase<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Text

type CamelCase<Text extends string> = Text extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Text

/** @returns a copy with snake_case keys, times in ISO 8601, and without undefined fields */
export function onTheWire<T>(value: T): OnTheWire<T> {
  return convert(value) as OnTheWire<T>
}

/** @returns a copy of the named fields with camelCase keys; absent fields stay absent */
export function offTheWire<T extends object, Name extends keyof T & string>(
  fields: T,
  names: readonly Name[],
): OffTheWire<Pick<T, Name>> {
  const present = names.filter((name) => Object.hasOwn(fields, name))
  const entries = present.map((name) => [
    name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    fields[name],
  ])
  return Object.fromEntries(entries) as OffTheWire<Pick<T, Name>>
}

function convert(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(convert)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .map(([key, field]) => [
        key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        convert(field),
      ]),
  )
}
