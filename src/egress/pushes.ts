/**
 * Listeners of others that this service sends streams to (`push_urls`): each is a reader of its stream that is called.
 *
 * @module
 */
import type { PushReport } from '../api/records.ts'
import { MillraceError } from '../errors.ts'
import type { RemotePeer } from '../outbound/remote-peer.ts'
import { StreamPeers, type PeerCalls } from '../outbound/stream-peers.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Reader } from '../stream/readers.ts'
import { SrtReader } from './srt-reader.ts'

interface PushesOptions extends PeerCalls {
  /** Whether the process reads packets more slowly than they arrive: then nobody is called. */
  readonly isOverloaded: () => boolean
}

/** Commands: `follow` each stream, `tick` about 4 times a second, `close`. Queries: `reportOf`, `stats`. */
export class Pushes {
  readonly #options: PushesOptions
  readonly #peers: StreamPeers<LiveStream>
  /** Readers of the peers that are connected. */
  readonly #readers = new Map<RemotePeer, SrtReader>()

  constructor(options: PushesOptions) {
    this.#options = options
    this.#peers = new StreamPeers({
      ...options,
      // What listeners send is discarded.
      call: (target, call) => options.call(target, { ...call, receives: false }),
      failureCode: 'PUSH_FAILING',
      openSink: (...call) => {
        if (options.isOverloaded()) throw new MillraceError('OVERLOADED')
        return this.#openReader(...call)
      },
    })
  }

  follow(stream: LiveStream): void {
    stream.on('configured', () => this.#peers.update(stream, stream.pushUrls))
  }

  tick(): void {
    this.#peers.tick()
  }

  /** In the order of the URLs; empty for a stream without `push_urls`. */
  reportOf(stream: LiveStream): PushReport[] {
    return this.#peers.peersOf(stream).map((peer) => {
      const reader = this.#readers.get(peer)
      if (reader === undefined) return peer.report
      const { remote: _, since: __, ...connection } = reader.report()
      return { ...peer.report, connection }
    })
  }

  get stats() {
    return this.#peers.stats
  }

  /** @param finishMs  max time for listeners to get what was sent to them */
  async close(finishMs: number): Promise<void> {
    for (const reader of this.#readers.values()) reader.close(finishMs)
    await this.#peers.close()
  }

  #openReader(stream: LiveStream, peer: RemotePeer, signal: AbortSignal): SrtReader {
    const { clock } = this.#options
    const { remote } = peer.report
    const finish = () => reader.close()
    const reader = new SrtReader(clock, {
      open: () => {
        if (stream.status === 'STOPPED') return false
        this.#readers.set(peer, reader)
        signal.addEventListener('abort', finish)
        stream.read(reading)
        stream.reportPush(remote)
        return true
      },
      end: (_reader, reason) => {
        this.#readers.delete(peer)
        signal.removeEventListener('abort', finish)
        stream.unread(reading)
        stream.reportPush(remote, reason)
      },
    })
    // Without `report`: status has listeners as pushes, not as readers.
    const reading: Reader = {
      send: (...payload) => reader.send(...payload),
      close: finish,
    }
    return reader
  }
}
