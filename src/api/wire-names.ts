/**
 * Names on the wire: the API and webhooks write `playlist_url` for `playlistUrl` of the library. Records are declared
 * under the library's names; their schemas on the wire follow from them.
 *
 * @module
 */
import { Type, type Static, type TObject, type TOptional, type TSchema } from 'typebox'

/** Type of the library for a schema: as deep as it goes, readers change nothing. */
export type Declared<Schema extends TSchema> = DeepReadonly<Static<Schema>>

type DeepReadonly<T> = T extends Date
  ? T
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T

/** `value` with snake_case keys, as JSON has it. */
export type OnTheWire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? OnTheWire<Item>[]
    : T extends object
      ? { -readonly [Key in keyof T as SnakeCase<Key & string>]: OnTheWire<T[Key]> }
      : T

type SnakeCase<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Text

/** @returns a copy with snake_case keys, times in ISO 8601, and without undefined fields */
export function onTheWire<T>(value: T): OnTheWire<T> {
  return convert(value) as OnTheWire<T>
}

/** @returns those fields of a body that `schema` declares, under their names there; absent fields stay absent */
export function offTheWire(
  body: Readonly<Record<string, unknown>>,
  { properties }: TObject,
): Record<string, unknown> {
  const present = Object.keys(properties).filter((name) => Object.hasOwn(body, snakeCase(name)))
  return Object.fromEntries(present.map((name) => [name, body[snakeCase(name)]]))
}

/**
 * Declares a field that the library leaves out where the wire has null.
 *
 * @param schema  of the value
 */
export function orNull<Schema extends TSchema>(
  schema: Schema,
  description: string,
): TOptional<Schema> {
  const union = Type.Union([schema, Type.Null()], { description })
  return Type.Optional(union) as unknown as TOptional<Schema>
}

/** @returns the schema of the same record on the wire */
export function wireSchema(schema: TObject): TObject {
  const { type: _, required: __, properties, ...options } = schema
  const fields = Object.entries(properties)
  return Type.Object(
    Object.fromEntries(fields.map(([name, field]) => [snakeCase(name), wireField(field)])),
    options,
  )
}

function wireField(field: TSchema): TSchema {
  if (Type.IsUnion(field)) {
    const { anyOf, ...options } = field
    return Type.Union(anyOf.map(wireType), options)
  }
  return Type.IsOptional(field) ? Type.Optional(wireType(field)) : wireType(field)
}

function wireType(schema: TSchema): TSchema {
  if (Type.IsObject(schema)) return wireSchema(schema)
  if (!Type.IsArray(schema)) return schema
  const { type: _, items, ...options } = schema
  return Type.Array(wireType(items), options)
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function convert(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(convert)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .map(([key, field]) => [snakeCase(key), convert(field)]),
  )
}
