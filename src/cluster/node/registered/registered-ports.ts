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
  /** Stream of this node that has a port to itself, as the registry last had it. */
  readonly findOwned: (port: number) => string | undefined
}

/** Who calls a port is unknown: however many do, the registry is read once a second, and by one call at a time. */
export class RegisteredPorts {
  readonly #options: RegisteredPortsOptions
  /** Undefined until the registry has answered once. */
  #ports: ReadonlyMap<number, RegisteredPort> | undefined
  /** Why the latest read has failed. */
  #failure: unknown
  #readUs = -Infinity
  #reading: Promise<void> | undefined
  /** Number of reads, and that of the latest one that was answered. */
  #reads = 0
  #answered = 0

  constructor(options: RegisteredPortsOptions) {
    this.#options = options
  }

  /**
   * While the registry is away, what it last had is believed, and encoders come back to streams that this node owns.
   *
   * @returns undefined for a port that no stream has to itself
   * @throws {MillraceError} `REGISTRY_UNAVAILABLE` if it has not answered so far, for a port of no stream of this node
   */
  async find(port: number): Promise<RegisteredPort | undefined> {
    const { range, clock, findOwned } = this.#options
    if (range === undefined || port < range.first || port > range.last) return undefined
    const nowUs = clock.nowUs()
    if (this.#reading === undefined && nowUs - this.#readUs >= MAX_AGE_US) {
      this.#readUs = nowUs
      this.#reading = this.#read()
    }
    await this.#reading
    const known = this.#ports?.get(port)
    if (known !== undefined || this.#failure === undefined) return known
    const streamId = findOwned(port)
    if (streamId !== undefined) return { port, streamId, options: {} }
    if (this.#ports === undefined) throw this.#failure
    return undefined
  }

  /** Believes nothing of what was read, or is being read: this node has changed it. */
  invalidate(): void {
    this.#readUs = -Infinity
    this.#reading = undefined
  }

  async #read(): Promise<void> {
    const number = ++this.#reads
    const answer = await this.#options.registry.listPorts().then(
      (ports) => ({ ports: new Map(ports.map((each) => [each.port, each])) }),
      (failure: unknown) => ({ failure, ports: this.#ports }),
    )
    if (number === this.#reads) this.#reading = undefined
    // A later read may have been answered earlier.
    if (number < this.#answered) return
    this.#answered = number
    this.#ports = answer.ports
    this.#failure = 'failure' in answer ? answer.failure : undefined
  }
}
