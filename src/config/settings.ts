/**
 * Settings as a list. The path of a setting gives its names in the environment (`srt.port` -> `SRT_PORT`) and as a flag
 * (`--srt-port`).
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
  /** Whether the value may be in a file although it is no secret. */
  readonly file?: boolean
  /** Allowed values in words; default: from type and bounds. */
  readonly allowed?: string
  readonly description?: string
}

/** All settings in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(Config, [])

function leaves(schema: TSchema, path: readonly string[]): Setting[] {
  const properties = (schema as { properties?: Record<string, TSchema> }).properties
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([key, child]) => leaves(child, [...path, key]))
  }
  const words = path.flatMap((key) => key.split(/(?=[A-Z])/)).map((word) => word.toLowerCase())
  const { secret, file } = schema as LeafKeywords
  const hasFile = secret === true || file === true
  return [{ path, env: words.join('_').toUpperCase(), flag: words.join('-'), schema, hasFile }]
}

/** Allowed values of a setting in words, for the README and for error messages. */
export function allowedValues({ schema }: Setting): string {
  if (schema.allowed !== undefined) return schema.allowed
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'number') return `a number from ${schema.minimum} to ${schema.maximum}`
  return 'text'
}
