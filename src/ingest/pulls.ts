/**
 * Sources that this service calls itself (`pull_url`): each is the main encoder of its stream, admitted as one that has
 * called.
 *
 * @module
 */
import type { PeerReport } from '../api/records.ts'
import { StreamPeers, type PeerCalls } from '../outbound/stream-peers.ts'
import type { PayloadSink } from '../srt/types.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Admission } from './admission.ts'
import { BurstQueue } from './burst-queue.ts'

/** Silence of a source after which it is called again. libsrt sends a packet each second, even without media. */
const IDLE_TIMEOUT_MS = 2000

interface PullsOptions extends PeerCalls {
  readonly admission: Pick<Admission, 'admitPulled'>
  /** Calls a function in a later turn of the event loop. */
  readonly defer: (act: () => void) => void
}

/** Commands: `follow` each stream, `tick` about 4 times a second, `close`. Queries: `reportOf`, `stats`. */
export class Pulls {
  readonly #peers: StreamPeers<LiveStream>

  constructor({ admission, defer, call, ...calls }: PullsOptions) {
    this.#peers = new StreamPeers({
      ...calls,
      call: (target, options) => call(target, { ...options, idleTimeoutMs: IDLE_TIMEOUT_MS }),
      failureCode: 'PULL_FAILING',
      openSink: async (stream, _peer, signal) =>
        lostWhenClosed(new BurstQueue(await admission.admitPulled(stream, signal), defer)),
    })
  }

  follow(stream: LiveStream): void {
    stream.on('configured', () => {
      const { pullUrl } = stream
      this.#peers.update(stream, pullUrl === undefined ? [] : [pullUrl])
    })
  }

  tick(): void {
    this.#peers.tick()
  }

  /** @returns undefined for a stream without `pull_url` */
  reportOf(stream: LiveStream): PeerReport | undefined {
    return this.#peers.peersOf(stream)[0]?.report
  }

  get stats() {
    return this.#peers.stats
  }

  close(): Promise<void> {
    return this.#peers.close()
  }
}

/** A source that this side gives up is lost to its stream, which goes on. */
function lostWhenClosed(sink: PayloadSink): PayloadSink {
  return {
    open: (connection) => sink.open(connection),
    push: (payload) => sink.push(payload),
    gap: (lostPackets) => sink.gap(lostPackets),
    end: (reason) => sink.end(reason === 'closed' ? 'shutdown' : reason),
  }
}
