/**
 * Calls of the API for the streams of this process.
 *
 * @module
 */
import type { Archive } from '../archive/archive.ts'
import type { StreamControl } from '../api/control.ts'
import {
  checkSource,
  type ClipReport,
  type EncoderSource,
  type StartedStream,
  type StreamPage,
  type StreamRecord,
} from '../api/records.ts'
import type {
  ClipRequest,
  KickRequest,
  ListRequest,
  StartRequest,
  StopRequest,
} from '../api/requests.ts'
import { makeClip } from './archiving.ts'
import type { Records } from './records.ts'
import { startAndAnnounce, type StartStreamOptions } from './start-stream.ts'
import type { StreamPorts } from './stream-ports.ts'
import type { Streams } from './streams.ts'

interface LocalControlOptions extends Omit<StartStreamOptions, 'start'> {
  readonly streams: Streams
  readonly records: Records
  readonly ports: StreamPorts
  /** Undefined without one. */
  readonly archive: Archive | undefined
}

export class LocalControl implements StreamControl {
  readonly #options: LocalControlOptions

  constructor(options: LocalControlOptions) {
    this.#options = options
  }

  startStream(request: StartRequest): Promise<StartedStream> {
    const { streams, ports, archive: _, ...options } = this.#options
    const start = async (checked: StartRequest) => {
      const { stream, ...keys } = await ports.open(checked, () => streams.start(checked))
      const passphrase = stream.encryption?.passphrase
      return { stream, ...keys, passphrase, formats: streams.formatsOf(stream) }
    }
    return startAndAnnounce(request, { ...options, start })
  }

  async stopStream(streamId: string, request?: StopRequest): Promise<StreamRecord> {
    const { streams, records } = this.#options
    return records.of(streams.stop(streamId, request))
  }

  async revokeKey(streamId: string, keyId: string): Promise<StreamRecord> {
    const { streams, records } = this.#options
    return records.of(streams.revokeKey(streamId, keyId))
  }

  kick(streamId: string, request?: KickRequest): StreamRecord {
    const { streams, records } = this.#options
    return records.of(streams.kick(streamId, request))
  }

  switchSource(streamId: string, source: EncoderSource): StreamRecord {
    const { streams, records } = this.#options
    checkSource(this.status(streamId), source)
    return records.of(streams.switchSource(streamId, source))
  }

  clip(streamId: string, request: ClipRequest): Promise<ClipReport> {
    return makeClip(this.#options.archive, streamId, request)
  }

  status(streamId: string): StreamRecord {
    const { streams, records } = this.#options
    return records.of(streams.get(streamId))
  }

  list(request: ListRequest = {}): StreamPage {
    const { streams, records } = this.#options
    return records.page(request, (filter) => streams.list(filter))
  }
}
