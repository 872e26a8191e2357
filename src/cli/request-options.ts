/**
 * Fields of a request of the API as options of a command: `--latency-ms` for `latency_ms`.
 *
 * @module
 */
import { Option } from 'commander'
import type { TObject, TSchema } from 'typebox'
import { snakeCase, type Declared } from '../api/wire-names.ts'

/** Fields that are an argument of the command, and that the client adds. */
const NO_OPTIONS = new Set(['streamId', 'issuedAt'])

/** @returns an option for each field of the body, which commander stores under the field's name in the library */
export function requestOptions({ properties }: TObject): Option[] {
  return Object.entries(properties)
    .filter(([name]) => !NO_OPTIONS.has(name))
    .flatMap(([name, schema]) => optionsOf(snakeCase(name).replaceAll('_', '-'), schema))
}

/** @returns those of the options that are fields of the body */
export function requestFields<Body extends TObject>(
  { properties }: Body,
  options: object,
): Partial<Declared<Body>> {
  const isField = ([name]: readonly [string, unknown]) => Object.hasOwn(properties, name)
  return Object.fromEntries(Object.entries(options).filter(isField)) as Partial<Declared<Body>>
}

interface SchemaNotes {
  readonly type?: string
  readonly description?: string
  readonly writeOnly?: boolean
}

/** The service checks the values. */
function optionsOf(flag: string, schema: TSchema): Option[] {
  const { type, description = '', writeOnly } = schema as SchemaNotes
  const note = writeOnly === true ? '; a secret, which all users of this machine see' : ''
  const allowed = description.replace(/^must be /, '') + note
  if (type === 'boolean') {
    const on = new Option(`--${flag}`, `true; --no-${flag} for false`)
    return [on, new Option(`--no-${flag}`).hideHelp()]
  }
  if (type === 'array') {
    const list = new Option(`--${flag} <value>`, `${allowed}; an option for each, '' for none`)
    return [list.argParser(append)]
  }
  const option = new Option(`--${flag} <value>`, allowed)
  return [type === 'integer' || type === 'number' ? option.argParser(toNumber) : option]
}

/** @returns NaN for text that is no number, also for none: that of a variable which is not set */
function toNumber(text: string): number {
  return text.trim() === '' ? NaN : Number(text)
}

function append(value: string, values: readonly string[] = []): readonly string[] {
  return value === '' ? values : [...values, value]
}
