/**
 * Peers of streams: a `RemotePeer`, which calls again after failures, for each URL of a stream, until the stream stops.
 *
 * @module
 */
import type { PeerState, StreamState } from '../api/records.ts'
import type { SrtUrl } from '../srt/io/srt-url.ts'
import type { PayloadSink } from '../srt/types.ts'
import type { Clock } from '../timing/clock.ts'
import { RemotePeer, type PeerConnection } from './remote-peer.ts'

interface CallOptions {
  readonly sink: PayloadSink
  readonly latencyMs: number
  readonly receives?: boolean
  readonly idleTimeoutMs?: number
  readonly signal: AbortSignal
}

/** How peers are called. */
export interface PeerCalls {
  /** @throws {RangeError} */
  readonly parseUrl: (url: string) => SrtUrl
  /** Calls a listener; what its URL says comes before the options. */
  readonly call: (target: SrtUrl, options: CallOptions) => Promise<PeerConnection>
  /** `SRT_LATENCY_MS` */
  readonly latencyMs: number
  readonly clock: Clock
  /** Draws a number from 0 up to 1. */
  readonly random: () => number
}

type FailureCode = 'PULL_FAILING' | 'PUSH_FAILING'

/** A stream, as peers know it. */
interface PeerOwner {
  readonly status: StreamState
  readonly policy: { readonly latencyMs?: number | undefined }
  warn(fact: { readonly code: FailureCode; readonly remote: string; readonly reason: string }): void
  /** The peer is connected: its warning is over. */
  endWarning(code: FailureCode, remote: string): void
}

interface StreamPeersOptions<Owner> extends PeerCalls {
  /** Warning of failed calls that operators can do something about. */
  readonly failureCode: FailureCode
  /** Opens the sink of a call. If it throws, the call has failed. */
  readonly openSink: (
    owner: Owner,
    peer: RemotePeer,
    signal: AbortSignal,
  ) => PayloadSink | Promise<PayloadSink>
}

/** Commands: `update` the URLs of a stream, `tick` about 4 times a second, `close`. Queries: `peersOf`, `stats`. */
export class StreamPeers<Owner extends PeerOwner> {
  readonly #options: StreamPeersOptions<Owner>
  /** Peers of each stream by URL, which may have secrets. */
  readonly #peers = new Map<Owner, ReadonlyMap<string, RemotePeer>>()
  /** Peers that are given up, until their connections have ended. */
  readonly #ending = new Set<Promise<void>>()
  readonly #failures: Record<string, number> = {}

  constructor(options: StreamPeersOptions<Owner>) {
    this.#options = options
  }

  /** Calls these URLs and no others. */
  update(owner: Owner, urls: readonly string[]): void {
    this.#replace(owner, owner.status === 'STOPPED' ? [] : urls)
  }

  tick(): void {
    for (const [owner, peers] of this.#peers) {
      if (owner.status === 'STOPPED') this.#replace(owner, [])
      else for (const peer of peers.values()) peer.tick()
    }
  }

  /** In the order of the URLs. */
  peersOf(owner: Owner): readonly RemotePeer[] {
    return [...(this.#peers.get(owner)?.values() ?? [])]
  }

  /** Number of peers by state, and of failed calls by error code. */
  get stats() {
    const states: Record<PeerState, number> = { CALLING: 0, CONNECTED: 0, WAITING: 0 }
    for (const peers of this.#peers.values())
      for (const peer of peers.values()) states[peer.report.state]++
    return { states, failures: this.#failures }
  }

  async close(): Promise<void> {
    for (const owner of this.#peers.keys()) this.#replace(owner, [])
    await Promise.all(this.#ending)
  }

  #replace(owner: Owner, urls: readonly string[]): void {
    const before = this.#peers.get(owner) ?? new Map<string, RemotePeer>()
    const peers = new Map(urls.map((url) => [url, before.get(url) ?? this.#peerOf(owner, url)]))
    if (peers.size === 0) this.#peers.delete(owner)
    else this.#peers.set(owner, peers)
    for (const [url, peer] of before) {
      if (peers.has(url)) continue
      const ending = peer.close().finally(() => this.#ending.delete(ending))
      this.#ending.add(ending)
    }
  }

  #peerOf(owner: Owner, url: string): RemotePeer {
    const { parseUrl, call, openSink, failureCode, clock, random } = this.#options
    const target = parseUrl(url)
    const peer: RemotePeer = new RemotePeer({
      target,
      clock,
      random,
      call: async (signal) => {
        const sink = await openSink(owner, peer, signal)
        const { latencyMs = this.#options.latencyMs } = owner.policy
        const connection = await call(target, { sink, latencyMs, signal })
        owner.endWarning(failureCode, peer.report.remote)
        return connection
      },
      onFailure: ({ code, remote, reason }) => {
        this.#failures[code] = (this.#failures[code] ?? 0) + 1
        if (reason !== undefined) owner.warn({ code: failureCode, remote, reason })
      },
    })
    return peer
  }
}
