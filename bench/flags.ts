/**
 * The flags of the benches. Each has bounds: a bench ends by itself and harms nobody.
 *
 * @module
 */
import { parseArgs } from 'node:util'

/** Name -> default, least, most. */
const NUMBERS = {
  mbit: [5, 0.1, 100],
  seconds: [10, 1, 300],
  rounds: [3, 1, 20],
  connections: [16, 1, 1000],
  publishers: [20, 1, 500],
  senders: [1, 1, 8],
  seed: [1, 1, 1e6],
  'cache-mib': [512, 16, 16384],
} as const

const STRING = { type: 'string' } as const

export class Flags {
  /** What stands before the flags. */
  readonly bench: string
  /** Undefined where neither `--encrypted` nor `--no-encrypted` was given. */
  readonly encrypted: boolean | undefined
  /** All publishers cut at the same moment. */
  readonly inPhase: boolean
  readonly #values: Readonly<Record<string, string | boolean | undefined>>

  constructor() {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      allowNegative: true,
      options: {
        ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, STRING])),
        encrypted: { type: 'boolean' },
        'in-phase': { type: 'boolean' },
        only: STRING,
        sender: STRING,
      },
    })
    this.bench = positionals[0] ?? 'http'
    this.encrypted = values['encrypted']
    this.inPhase = values['in-phase'] === true
    this.#values = values
  }

  /** @throws {RangeError} where the number is out of bounds */
  number(name: keyof typeof NUMBERS, benchPreset?: number): number {
    const [preset, least, most] = NUMBERS[name]
    const value = Number(this.#values[name] ?? benchPreset ?? preset)
    if (value >= least && value <= most) return value
    throw new RangeError(`--${name} takes a number from ${least} to ${most}`)
  }

  /** The one that was given, or undefined. */
  optional(name: keyof typeof NUMBERS): number | undefined {
    return this.#values[name] === undefined ? undefined : this.number(name)
  }

  /** The one that was given, or else all of these. */
  numbers(name: keyof typeof NUMBERS, benchPresets: readonly number[]): readonly number[] {
    return this.#values[name] === undefined ? benchPresets : [this.number(name)]
  }

  /** @throws {RangeError} where it is none of these */
  oneOf<Name extends string>(flag: 'only' | 'sender', names: readonly Name[]): Name | undefined {
    const value = this.#values[flag]
    if (value === undefined) return undefined
    const name = names.find((each) => each === value)
    if (name === undefined) throw new RangeError(`--${flag} takes one of ${names.join(', ')}`)
    return name
  }
}
