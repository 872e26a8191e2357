/**
 * Ports of `SRT_STREAM_PORTS`, each of which one stream has to itself, for encoders that send no stream id.
 *
 * @module
 */
import type { StartRequest } from '../api/requests.ts'
import { parsePortRange } from '../config/setting-types.ts'
import { MillraceError } from '../errors.ts'
import type { Listener } from '../srt/io/listener.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Settings } from './settings-in-use.ts'
import type { Streams } from './streams.ts'

interface StreamPortsOptions {
  readonly settings: Settings
  readonly streams: Pick<Streams, 'find'>
  /** @returns undefined until the service listens */
  readonly readListener: () => Listener | undefined
}

/** A stream has its port from `open` until it ends. */
export class StreamPorts {
  readonly #options: StreamPortsOptions
  readonly #owners = new Map<number, string>()

  constructor(options: StreamPortsOptions) {
    this.#options = options
  }

  /** Stream that has a port to itself. */
  ownerOf(port: number): string | undefined {
    return this.#owners.get(port)
  }

  /** Port of a stream. */
  portOf(streamId: string): number | undefined {
    return [...this.#owners].find(([, owner]) => owner === streamId)?.[0]
  }

  /**
   * Opens the port of a request for the stream that `start` starts.
   *
   * @throws {MillraceError} `BODY_INVALID` if the settings, the request or another stream do not allow it, and what
   *   `start` throws; the port is closed then
   */
  async open<Started extends { readonly stream: LiveStream }>(
    request: StartRequest,
    start: () => Promise<Started>,
  ): Promise<Started> {
    const { streamId, publishPort: port } = request
    if (port === undefined || this.portOf(streamId) === port) return start()
    this.#check(request, port)
    this.#owners.set(port, streamId)
    try {
      await this.#options.readListener()?.open(port)
      const started = await start()
      started.stream.once('end', () => this.#close(port))
      return started
    } catch (error) {
      this.#close(port)
      throw isTaken(error) ? invalid(`${port} is in use by another program`) : error
    }
  }

  #close(port: number): void {
    this.#owners.delete(port)
    void this.#options.readListener()?.closePort(port)
  }

  #check({ streamId, encryption, allowFrom }: StartRequest, port: number): void {
    const { settings, streams, readListener } = this.#options
    const { streamPorts, passphrase } = settings.config.srt
    checkRange(port, streamPorts)
    const known = this.portOf(streamId)
    if (known !== undefined) throw PORT_REFUSALS.other(known)
    if (this.#owners.has(port)) throw PORT_REFUSALS.taken(port)
    if (readListener()?.has(port)) throw invalid(`${port} is SRT_PORT or SRTLA_PORT`)
    const running = streams.find(streamId)
    const stream = running?.status === 'STOPPED' ? undefined : running
    const isEncrypted = encryption === true || stream?.encryption !== undefined || passphrase !== ''
    if (isEncrypted || allowFrom !== undefined || stream?.policy.allowFrom !== undefined) return
    throw PORT_REFUSALS.open()
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ADDRESS_IN_USE'
}

/**
 * @param streamPorts  `SRT_STREAM_PORTS`
 * @throws {MillraceError} `BODY_INVALID` for a port that is none of them
 */
export function checkRange(port: number, streamPorts: string): void {
  const range = parsePortRange(streamPorts)
  if (range === undefined) throw invalid('must be absent: SRT_STREAM_PORTS is not set')
  if (port < range.first || port > range.last)
    throw invalid(`must be one of SRT_STREAM_PORTS, ${streamPorts}`)
}

/** Why a stream does not get a port of the range, in one process and in a cluster. */
export const PORT_REFUSALS = {
  other: (known: number) => invalid(`must be ${known} until the stream stops: stop it first`),
  taken: (port: number) => invalid(`${port} belongs to another stream`),
  open: () => invalid('requires encryption or allow_from: the port is open to all who find it'),
} as const

function invalid(what: string): MillraceError {
  return new MillraceError('BODY_INVALID', { message: `publish_port ${what}` })
}
