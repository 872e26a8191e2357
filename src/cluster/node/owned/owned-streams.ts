/**
 * Streams of this process that its node owns, and what the registry is told of them.
 *
 * @module
 */
import type { Clock, Timers } from '../../../timing/clock.ts'
import { OwnerWrites, type Loss } from './owner-writes.ts'
import type { Handover, RegisteredStream } from '../../registry/registered.ts'
import type { RunName } from '../../registry/outboxes.ts'
import type { Registry } from '../../registry/registry.ts'
import type { StopReason, StreamState, StreamRecord } from '../../../api/records.ts'
import type { Logger } from '../../../logger.ts'
import type { LiveStream } from '../../../stream/live-stream.ts'
import type { MediaBackup } from '../backup/media-backup.ts'
import { encodeHead, encodeCheckpoint, encodeRows } from '../registered/registered-checkpoint.ts'

/** Streams that are listed at once. */
const MAX_PAGE = 1000

interface Owned {
  readonly stream: LiveStream
  readonly fence: number
  readonly run: number
  readonly writes: OwnerWrites
  /** Why the stream has ended. */
  reason?: StopReason
  /** Announces that it has. */
  announce?: () => Promise<unknown>
  /** Whether the registry may have been told again that it has ended, and nobody announces it. */
  isUnannounced?: boolean
}

/** Fences of the streams that the registry has for a node, by stream id. */
interface ListedStreams {
  readonly running: ReadonlyMap<string, number>
  /** Stopped ones. */
  readonly lingering: ReadonlyMap<string, number>
}

interface OwnedStreamsOptions {
  readonly node: string
  readonly registry: Pick<Registry, 'advance' | 'restore' | 'stop' | 'useKey'>
  /** Undefined: media of this node ends with it. */
  readonly backup: Pick<MediaBackup, 'follow' | 'flush'> | undefined
  readonly lingerMs: number
  readonly readLeaseSince: () => number | undefined
  /** Stream keys of a stream of this node, see `KeyList.uses`. */
  readonly keyUsesOf: (stream: LiveStream) => Readonly<Record<string, number>>
  /** See `RegisteredStreams`. Absent: what the claim has. */
  readonly appliedOf?: (
    stream: LiveStream,
  ) => Pick<RegisteredStream, 'options' | 'keyExpiresAtMs'> | undefined
  /** Called for a stream of this node that a registry that had lost it has again, maybe without its port. */
  readonly onRestored?: (stream: LiveStream) => void
  /** Forgets a stream that another node continues. */
  readonly leave: (stream: LiveStream) => void
  /** Claims a stream of this node again. */
  readonly reclaim: (streamId: string) => void
  readonly logger: Logger
  readonly clock: Pick<Clock, 'wallMs'>
  readonly timers: Pick<Timers, 'sleep'>
}

/** Stopped streams stay until their linger is over, since edges still read them. */
export class OwnedStreams {
  readonly #options: OwnedStreamsOptions
  readonly #owned = new Map<string, Owned>()

  constructor(options: OwnedStreamsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#running.length
  }

  /** Number of streams with changes that the registry has not acknowledged. */
  get pending(): number {
    return [...this.#owned.values()].filter(({ writes }) => writes.isPending).length
  }

  /** @returns undefined unless the node owns the stream, and serves it */
  fenceOf(streamId: string): number | undefined {
    return this.#find(streamId)?.fence
  }

  /** Ownership of a stream, for its record; empty unless the node owns it. */
  reportOf(streamId: string): Pick<StreamRecord, 'fence' | 'pendingWrites'> {
    const owned = this.#find(streamId)
    if (owned === undefined) return {}
    return { fence: owned.fence, pendingWrites: owned.writes.pendingWrites }
  }

  /** Whether the stream runs here. */
  has(streamId: string): boolean {
    const status = this.#find(streamId)?.stream.status
    return status !== undefined && status !== 'STOPPED'
  }

  /** Begins to write what the stream does. */
  own(stream: LiveStream, { stream: registered }: Handover): void {
    const { node, registry, backup, lingerMs, logger, readLeaseSince } = this.#options
    const { clock, timers } = this.#options
    const { id: streamId, fence, run, epoch, startedAtMs, keyExpiresAtMs, options } = registered
    const { reason } = registered
    const past = { epoch, run, startedAtMs, keyExpiresAtMs, options }
    const log = logger.child({ stream_id: streamId })
    const writes = new OwnerWrites({
      registry,
      streamId,
      run,
      lingerMs,
      clock,
      timers,
      ownership: { node, fence },
      readLeaseSince,
      readStatus: () => runningStatus(stream.status),
      readWhole: () => ({
        ...past,
        ...this.#options.appliedOf?.(stream),
        ...encodeCheckpoint(stream.checkpoint),
        keys: this.#options.keyUsesOf(stream),
      }),
      onRestored: () => this.#options.onRestored?.(stream),
      onLost: (loss) => this.#lose(owned, loss),
      onError: (err) => log.error({ err }, 'the registry cannot take what the stream has done'),
    })
    const owned: Owned = { stream, fence, run, writes, ...(reason && { reason }) }
    this.#owned.get(streamId)?.writes.close()
    this.#owned.set(streamId, owned)
    log.info({ fence }, 'stream claimed')
    writes.push(encodeCheckpoint(stream.checkpoint))
    backup?.follow(stream)
    stream.on('checkpoint', ({ head, rows, oldest }) => {
      writes.push({ first: oldest, ...encodeHead(head), entries: encodeRows(rows) })
    })
    stream.on('publish', ({ keyId }) => {
      writes.touch()
      // For the next owner. This one knows it anyhow.
      if (keyId !== undefined) void registry.useKey(streamId, keyId).catch(() => undefined)
    })
    stream.on('live', () => writes.touch())
    stream.on('interrupted', () => writes.touch())
  }

  /**
   * Tells the registry that a stream has ended.
   *
   * @param announce  called once the registry knows, again for as long as it throws, and when the registry has lost the end
   * @returns false for a stream that the node does not own
   */
  stop(
    stream: LiveStream,
    reason: StopReason,
    announce: (run: RunName) => Promise<unknown>,
  ): boolean {
    const owned = this.#owned.get(stream.id)
    if (owned?.stream !== stream) return false
    const { run, writes } = owned
    owned.reason = reason
    owned.announce = () => announce({ streamId: stream.id, run })
    void writes.stop(reason, owned.announce)
    return true
  }

  /** Lets another node claim a stream, and forgets it: it may go on here only under a new claim. */
  async yield(streamId: string, timeoutMs: number): Promise<void> {
    const owned = this.#find(streamId)
    if (owned === undefined) return
    await Promise.all([owned.writes.yield(timeoutMs), this.#options.backup?.flush(timeoutMs)])
    this.#leave(owned)
  }

  /**
   * Compares the streams that run or linger here with those that the registry has for this node.
   *
   * @returns streams of the node that are not here
   */
  async reconcile({ running, lingering }: ListedStreams): Promise<string[]> {
    for (const [streamId, owned] of this.#owned) {
      const { stream, fence, writes } = owned
      if (stream.forgotten && running.get(streamId) !== fence) {
        // Its linger ends a little later in the registry: until then it is none to be adopted.
        if (lingering.get(streamId) !== fence) this.#owned.delete(streamId)
      } else if (stream.status !== 'STOPPED') {
        if (running.get(streamId) === fence) writes.confirm()
        else writes.touch()
      } else if (
        owned.isUnannounced ||
        running.has(streamId) ||
        lingering.get(streamId) !== fence
      ) {
        // What fails is tried again in the next round.
        await this.#repeatStop(owned).catch(() => undefined)
      }
    }
    return [...running.keys(), ...lingering.keys()].filter((id) => !this.#owned.has(id))
  }

  /**
   * Stops a stream again: a failover of Redis has lost the stop, an outage has outlasted its attempts, the stream goes on
   * elsewhere, or its linger is over.
   */
  async #repeatStop(owned: Owned): Promise<void> {
    const { node, registry, lingerMs } = this.#options
    const { stream, run, fence, reason = 'api' } = owned
    owned.isUnannounced = true
    const stopped = await registry.stop(stream.id, { reason, run, by: { node, fence }, lingerMs })
    if (stopped.outcome === 'unknown') return
    // A call without a response may have stopped it before.
    if (stopped.outcome === 'stopped') await owned.announce?.()
    owned.isUnannounced = false
    // Its next run may have another owner, whom edges look for when this node does not answer for it any more.
    if (stopped.outcome === 'changed' || stopped.stream.owner !== node) this.#leave(owned)
  }

  /** Disconnects all encoders and forgets the streams that run, for other nodes to adopt, once their ends are written. */
  async handOver(timeoutMs: number): Promise<void> {
    const running = this.#running
    for (const { stream } of running) stream.leave()
    const written = [...this.#owned.values()].map(async (owned) => {
      await owned.writes.flush(timeoutMs)
      if (running.includes(owned)) this.#leave(owned)
    })
    await Promise.all([this.#options.backup?.flush(timeoutMs), ...written])
  }

  /** Writes nothing any more. */
  close(): void {
    for (const { writes } of this.#owned.values()) writes.close()
  }

  get #running(): Owned[] {
    return [...this.#owned.values()].filter(({ stream }) => stream.status !== 'STOPPED')
  }

  #find(streamId: string): Owned | undefined {
    const owned = this.#owned.get(streamId)
    return owned === undefined || owned.stream.forgotten ? undefined : owned
  }

  #lose(owned: Owned, loss: Loss): void {
    const { stream } = owned
    const log = this.#options.logger.child({ stream_id: stream.id })
    if (loss.outcome === 'stopped') {
      stream.stop(loss.stream.reason ?? 'api')
      return
    }
    this.#leave(owned)
    if (loss.outcome === 'overtaken') {
      log.warn('another node has used later numbers of the stream, which is claimed again')
      this.#options.reclaim(stream.id)
    } else if (loss.outcome === 'forgotten') {
      log.warn('the registry, out of reach for two hours, does not know the stream: it may be over')
    } else log.warn(describeOwner(loss.stream), 'another node owns the stream now')
  }

  #leave(owned: Owned): void {
    const { stream, writes } = owned
    writes.close()
    if (this.#owned.get(stream.id) === owned) this.#owned.delete(stream.id)
    this.#options.leave(stream)
  }
}

/** Lists the streams that the registry has for a node. */
export async function listOwned(
  registry: Pick<Registry, 'owned'>,
  node: string,
): Promise<ListedStreams> {
  const running = await listFences(registry, node, false)
  return { running, lingering: await listFences(registry, node, true) }
}

async function listFences(
  registry: Pick<Registry, 'owned'>,
  node: string,
  lingering: boolean,
): Promise<ReadonlyMap<string, number>> {
  const listed = new Map<string, number>()
  for (let after = ''; ;) {
    const page = await registry.owned(node, { after, limit: MAX_PAGE, lingering })
    for (const { id, fence } of page) listed.set(id, fence)
    if (page.length < MAX_PAGE) return listed
    after = page.at(-1)!.id
  }
}

function describeOwner({ owner = '', fence }: RegisteredStream) {
  return { node: owner, fence }
}

function runningStatus(status: StreamState): Exclude<StreamState, 'STOPPED'> {
  return status === 'STOPPED' ? 'INTERRUPTED' : status
}
