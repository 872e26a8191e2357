/**
 * Streams of this process, as the registry has them: continued where their last owner has left them, and brought in line
 * with what other nodes have changed.
 *
 * @module
 */
import type { Clock } from '../../../timing/clock.ts'
import type { Handover, RegisteredStream } from '../../registry/registered.ts'
import { decodeOptions } from '../../registry/registered-options.ts'
import type { MediaSource } from '../../../hls/playlist/earlier-segments.ts'
import type { MediaSettings } from '../../../service/stream-defaults.ts'
import type { Streams } from '../../../service/streams.ts'
import { nameRun, type LiveStream } from '../../../stream/live-stream.ts'
import { checkpointOf } from './registered-checkpoint.ts'
import { applyPolicy, type PolicyOptions } from './registered-policy.ts'

interface RegisteredStreamsOptions extends PolicyOptions, MediaSettings {
  readonly clock: Clock
  readonly streams: Pick<
    Streams,
    'find' | 'continueStream' | 'setMedia' | 'refuseKeysBefore' | 'revokeKey' | 'listKeys'
  >
}

type Applied = Pick<RegisteredStream, 'options' | 'keyExpiresAtMs'>

export class RegisteredStreams {
  readonly #options: RegisteredStreamsOptions
  /** What has been applied to a stream. */
  readonly #known = new WeakMap<LiveStream, Applied>()

  constructor(options: RegisteredStreamsOptions) {
    this.#options = options
  }

  /**
   * Continues a stream that this node has claimed, with the media that there is of it.
   *
   * @throws {MillraceError} `SHUTTING_DOWN`, `TOO_MANY_STREAMS`
   */
  continueStream(handover: Handover, mediaOf?: MediaSource): LiveStream {
    const { streams } = this.#options
    const { stream: registered } = handover
    const { id, fence, reason: ended, options } = registered
    const checkpoint = checkpointOf(handover, this.#options)
    const { media = {} } = decodeOptions(options)
    // A run has the same name at each of its owners.
    const run = nameRun(registered.startedAtMs, String(registered.run))
    const stream = streams.continueStream(id, media, { checkpoint, run, fence, mediaOf, ended })
    this.#apply(stream, registered)
    return stream
  }

  /** Brings a stream in line with its record, which another node may have changed. */
  refresh(registered: RegisteredStream): void {
    const { streams } = this.#options
    const stream = streams.find(registered.id)
    if (stream === undefined || stream.status === 'STOPPED') return
    streams.setMedia(stream, decodeOptions(registered.options).media ?? {})
    if (registered.status === 'STOPPED') {
      stream.stop(registered.reason ?? 'api')
      return
    }
    const known = decodeOptions(this.#known.get(stream)?.options ?? {})
    this.#apply(stream, registered)
    const { switched, kick } = decodeOptions(registered.options)
    const { preferredSource } = stream.policy
    if (switched !== known.switched && preferredSource !== undefined)
      stream.switchSource(preferredSource)
    if (kick !== known.kick) stream.disconnect('kicked')
  }

  /** What the registry last had of a stream of this process, for one that has lost it. */
  appliedOf(stream: LiveStream): Applied | undefined {
    return this.#known.get(stream)
  }

  /** Port that a stream has to itself. */
  portOf(stream: LiveStream): number | undefined {
    if (stream.status === 'STOPPED') return undefined
    const port = this.#known.get(stream)?.options['publishPort']
    return typeof port === 'number' ? port : undefined
  }

  #apply(stream: LiveStream, registered: RegisteredStream): void {
    const { options, keyExpiresAtMs, keyFloorSec, revokedKeys = [], keys } = registered
    const { streams } = this.#options
    const known = this.#known.get(stream)
    applyPolicy(stream, registered, this.#options)
    if (keyFloorSec !== undefined) streams.refuseKeysBefore(stream.id, keyFloorSec)
    for (const keyId of revokedKeys) streams.revokeKey(stream.id, keyId)
    streams.listKeys(stream, keys)
    if (keyExpiresAtMs > (known?.keyExpiresAtMs ?? 0)) stream.renewKey(keyExpiresAtMs)
    this.#known.set(stream, { options, keyExpiresAtMs })
  }
}
