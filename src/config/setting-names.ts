/**
 * Settings as a list. The path of a setting gives its names in the environment (`srt.port` -> `SRT_PORT`) and as a flag
 * (`--srt-port`), unless the schema has another one.
 *
 * @module
 */
import type { TSchema } from 'typebox'
import { Config } from './schema.ts'

/** One leaf of the schema and its names. */
export interface Setting {
  readonly path: readonly string[]
  /** Name in the environment. */
  readonly env: string
  /** Name as a flag, without the dashes. */
  readonly flag: string
  readonly schema: TSchema & LeafKeywords
  /** Whether the value may be in a file, named by the setting with `_FILE` after its name. */
  readonly hasFile: boolean
}

interface LeafKeywords {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: string | number | boolean
  /** Default that depends on memory, in words; `presetFor` computes it from the usable memory in bytes. */
  readonly preset?: string
  readonly presetFor?: (memoryBytes: number) => number
  /** Whether the value is a credential, which is never printed. */
  readonly secret?: boolean
  /** Whether a secret is long enough for the program, which refuses shorter ones; a library only warns of them. */
  readonly isLong?: (text: string) => boolean
  /** Whether the value may be in a file although it is no secret. */
  readonly file?: boolean
  /** Allowed values in words; default: from type and bounds. */
  readonly allowed?: string
  readonly description?: string
  /** Name in the environment; default: from the path. */
  readonly env?: string
}

/** Maximum length of a value quoted in a message, so that the message has at most 160 characters. */
const MAX_QUOTED_CHARACTERS = 40

/** All settings in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(Config, [])

function leaves(schema: TSchema, path: readonly string[]): Setting[] {
  const properties = (schema as { properties?: Record<string, TSchema> }).properties
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([key, child]) => leaves(child, [...path, key]))
  }
  const words = path.flatMap((key) => key.split(/(?=[A-Z])/))
  const { secret, file, env = words.join('_').toUpperCase() } = schema as LeafKeywords
  const hasFile = secret === true || file === true
  return [{ path, env, flag: env.toLowerCase().replaceAll('_', '-'), schema, hasFile }]
}

/** Allowed values of a setting in words, for docs and error messages. */
export function allowedValues({ schema }: Setting): string {
  if (schema.allowed !== undefined) return schema.allowed
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'number') return `a number from ${schema.minimum} to ${schema.maximum}`
  return 'text'
}

/** What is wrong with a value, and what is allowed; the value itself only if it is no secret, and without credentials. */
export function problemWith(setting: Setting, value: unknown): string {
  const { env, schema } = setting
  const isRequired = schema.default === undefined && schema.presetFor === undefined
  const advice = isRequired ? '; `millrace keygen` prints one' : ''
  return `${env} ${describe(value, setting)}: expected ${allowedValues(setting)}${advice}`
}

function describe(value: unknown, { schema }: Setting): string {
  if (value === undefined) return 'is not set'
  if (schema.secret !== true) {
    return `is ${clip(JSON.stringify(value).replace(/:\/\/[^/"]*@/, '://…@'))}`
  }
  if (typeof value !== 'string') return 'is not text'
  return value === '' ? 'is empty' : `has ${Buffer.byteLength(value)} bytes`
}

export function clip(text: string): string {
  return text.length <= MAX_QUOTED_CHARACTERS ? text : `${text.slice(0, MAX_QUOTED_CHARACTERS)}…`
}

/** Value of a setting in nested settings; undefined if it is not set. */
export function readSetting(settings: object, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key],
    settings,
  )
}

export function writeSetting(
  settings: Record<string, unknown>,
  path: readonly string[],
  value: unknown,
): void {
  const [key, ...rest] = path
  if (key === undefined) return
  if (rest.length === 0) settings[key] = value
  else writeSetting((settings[key] ??= {}) as Record<string, unknown>, rest, value)
}
