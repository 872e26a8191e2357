/**
 * Command line flags of the benches, with bounds, so that every bench ends.
 *
 * @module
 */
import { parseArgs } from 'node:util'

/** Default, minimum and maximum of each number. */
const NUMBERS = {
  mbit: [5, 0.1, 100],
  seconds: [10, 1, 600],
  rounds: [3, 1, 20],
  connections: [16, 1, 1000],
  publishers: [20, 1, 500],
  senders: [1, 1, 8],
  'ingest-workers': [1, 1, 8],
  seed: [1, 1, 1e6],
  'cache-mib': [512, 16, 16384],
  hours: [8, 0.1, 24],
  speed: [50, 1, 1000],
  streams: [1000, 1, 10_000],
  viewers: [200, 1, 2000],
  readers: [50, 1, 500],
  'failover-sec': [20, 18, 3600],
} as const

const STRING = { type: 'string' } as const

export class Flags {
  /** Name of the bench. */
  readonly bench: string
  /** Command line without the flags that change no figure. */
  readonly args: string
  /** Undefined without `--encrypted` and `--no-encrypted`. */
  readonly encrypted: boolean | undefined
  /** Whether all publishers send key frames at the same time. */
  readonly inPhase: boolean
  /** Whether to publish more than the process can read. */
  readonly overload: boolean
  /** Whether one publisher sends ten times its rate. */
  readonly surge: boolean
  /** Whether each stream has a backup encoder, too. */
  readonly backups: boolean
  /** Whether the streams are archived, too. */
  readonly archives: boolean
  /** Whether to leave CPU profiles. */
  readonly profile: boolean
  /** Whether to write `bench/RESULTS.md` in the end. */
  readonly write: boolean
  /** File for the results as JSON. */
  readonly json: string | undefined
  readonly #values: Readonly<Record<string, string | boolean | undefined>>

  constructor() {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      allowNegative: true,
      options: {
        ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, STRING])),
        encrypted: { type: 'boolean' },
        'in-phase': { type: 'boolean' },
        overload: { type: 'boolean' },
        surge: { type: 'boolean' },
        backups: { type: 'boolean' },
        archives: { type: 'boolean' },
        profile: { type: 'boolean' },
        write: { type: 'boolean' },
        json: STRING,
        only: STRING,
        sender: STRING,
        workers: STRING,
      },
    })
    this.bench = positionals[0] ?? 'http'
    const { profile: _, write: __, json: ___, ...measuring } = values
    this.args = [
      this.bench,
      ...Object.entries(measuring).map(([name, value]) =>
        typeof value === 'boolean' ? `--${value ? '' : 'no-'}${name}` : `--${name} ${value}`,
      ),
    ].join(' ')
    this.encrypted = values['encrypted']
    this.inPhase = values['in-phase'] === true
    this.overload = values['overload'] === true
    this.surge = values['surge'] === true
    this.backups = values['backups'] === true
    this.archives = values['archives'] === true
    this.profile = values['profile'] === true
    this.write = values['write'] === true
    this.json = values['json']
    this.#values = values
  }

  /** @throws {RangeError} when the number is out of bounds */
  number(name: keyof typeof NUMBERS, benchPreset?: number): number {
    const [preset, min, max] = NUMBERS[name]
    const value = Number(this.#values[name] ?? benchPreset ?? preset)
    if (value >= min && value <= max) return value
    throw new RangeError(`--${name} takes a number from ${min} to ${max}`)
  }

  /** @returns the number given, or undefined */
  optional(name: keyof typeof NUMBERS): number | undefined {
    return this.#values[name] === undefined ? undefined : this.number(name)
  }

  /** @returns the number given, or else all presets */
  numbers(name: keyof typeof NUMBERS, benchPresets: readonly number[]): readonly number[] {
    const value = this.optional(name)
    return value === undefined ? benchPresets : [value]
  }

  /**
   * Reads values separated by commas.
   *
   * @throws {RangeError} when one of them is none of `names`
   */
  someOf(flag: 'only' | 'workers', names: readonly string[]): readonly string[] | undefined {
    const values = (this.#values[flag] as string | undefined)?.split(',')
    if (values === undefined || values.every((value) => names.includes(value))) return values
    throw new RangeError(`--${flag} takes some of ${names.join(',')}`)
  }

  /** @throws {RangeError} when the value is none of `names` */
  oneOf<Name extends string>(flag: 'only' | 'sender', names: readonly Name[]): Name | undefined {
    const value = this.#values[flag]
    if (value === undefined) return undefined
    const name = names.find((each) => each === value)
    if (name === undefined) throw new RangeError(`--${flag} takes one of ${names.join(', ')}`)
    return name
  }
}
