/**
 * Ports that streams of the cluster have to themselves, as the registry has them.
 *
 * @module
 */
import type { Clock } from '../../../timing/clock.ts'
import type { RegisteredPort } from '../../registry/registered.ts'
import type { Registry } from '../../registry/registry.ts'

/** Time for which what was read is believed, in microseconds. */
const MAX_AGE_US = 1_000_000

interface RegisteredPortsOptions {
  readonly registry: Pick<Registry, 'listPorts'>
  /** `SRT_STREAM_PORTS`; undefined: none */
  readonly range: { readonly first: number; readonly last: number } | undefined
  readonly clock: Pick<Clock, 'nowUs'>
}

/** Who calls a port is unknown: however many do, the registry is read once a second, and by one call at a time. */
export class RegisteredPorts {
  readonly #options: RegisteredPortsOptions
  /** Undefined until the registry has answered once. */
  #ports: ReadonlyMap<number, RegisteredPort> | undefined
  #failure: unknown
  #readUs = -Infinity
  #reading: Promise<void> | undefined

  constructor(options: RegisteredPortsOptions) {
    this.#options = options
  }

  /**
   * While the registry is away, what it last had is believed: encoders come back to streams that this node owns.
   *
   * @returns undefined for a port that no stream has to itself
   * @throws {MillraceError} `REGISTRY_UNAVAILABLE` if it has not answered so far
   */
  async find(port: number): Promise<RegisteredPort | undefined> {
    const { range, clock } = this.#options
    if (range === undefined || port < range.first || port > range.last) return undefined
    const nowUs = clock.nowUs()
    if (this.#reading === undefined && nowUs - this.#readUs >= MAX_AGE_US) {
      this.#readUs = nowUs
      this.#reading = this.#read().finally(() => (this.#reading = undefined))
    }
    await this.#reading
    if (this.#ports === undefined) throw this.#failure
    return this.#ports.get(port)
  }

  /** Believes nothing of what was read: this node has changed it. */
  refresh(): void {
    this.#readUs = -Infinity
  }

  async #read(): Promise<void> {
    try {
      const ports = await this.#options.registry.listPorts()
      this.#ports = new Map(ports.map((each) => [each.port, each]))
    } catch (error) {
      this.#failure = error
    }
  }
}
