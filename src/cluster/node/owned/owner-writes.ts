/**
 * Writes of the owner of a stream: about one call a segment, with all that the registry has not acknowledged. While the
 * registry is away, changes are merged and wait: media and viewers never wait for them.
 *
 * @module
 */
import type { Clock, Timers } from '../../../timing/clock.ts'
import { withTimeout } from '../../../timing/time-limit.ts'
import type { StopReason } from '../../../api/records.ts'
import type { Advanced, Ownership, Restoration, Registry } from '../../registry/registry.ts'
import type { RegisteredStream, WindowEntry } from '../../registry/registered.ts'
import type { CheckpointWrite } from '../registered/registered-checkpoint.ts'

/** Waits between attempts, in milliseconds: doubled each time. */
const RETRY_MS = { first: 100, max: 1000 }

/** Time for which the end of a stream is told to a registry that does not answer. */
const STOP_MS = 10 * 60 * 1000

/** Why a node no longer owns a stream as it did. */
export type Loss =
  | { readonly outcome: 'stale' | 'stopped'; readonly stream: RegisteredStream }
  /** Viewers of another owner have seen these numbers: the stream is to be claimed again. */
  | { readonly outcome: 'overtaken' }
  /** The registry was out of reach for longer than it knows of a stop. */
  | { readonly outcome: 'forgotten' }

export interface OwnerWritesOptions {
  readonly registry: Pick<Registry, 'advance' | 'restore' | 'stop'>
  readonly streamId: string
  readonly ownership: Ownership
  readonly run: number
  readonly lingerMs: number
  readonly readStatus: () => Restoration['status']
  /** See `Advance.leaseSinceMs`. */
  readonly readLeaseSince: () => number | undefined
  /** Reads the whole stream, for a registry that has lost it. */
  readonly readWhole: () => Omit<Restoration, 'serial' | 'status' | 'awayMs'>
  /** A machine that sleeps is away, too. */
  readonly clock: Pick<Clock, 'wallMs'>
  readonly timers: Pick<Timers, 'sleep'>
  /** Called when a registry that had lost the stream has it again, maybe without its port. */
  readonly onRestored?: () => void
  /** Called once; then nothing is written any more. */
  readonly onLost: (loss: Loss) => void
  /** Called for what can never be written: its numbers are, without it. */
  readonly onError: (error: unknown) => void
}

/** Commands: `push` and `touch` for changes, `yield`, `stop`; `close` at any time. */
export class OwnerWrites {
  readonly #options: OwnerWritesOptions
  readonly #closing = new AbortController()
  /** Entries without acknowledgement, by number. */
  readonly #entries = new Map<number, unknown>()
  #state: Omit<CheckpointWrite, 'entries'> | undefined
  /** Table of renditions that the registry has, as JSON. */
  #knownRenditions: string | undefined
  #isYielded = false
  #serial = 0
  /** Number of changes, and of those in the latest acknowledged call. */
  #changes = 0
  #acknowledged = 0
  #sending: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  /** When the registry was last known to have the stream. */
  #knownMs: number

  constructor(options: OwnerWritesOptions) {
    this.#options = options
    this.#knownMs = options.clock.wallMs()
  }

  /** Number of changes without acknowledgement. */
  get pendingWrites(): number {
    return this.#changes - this.#acknowledged
  }

  /** Whether there are changes without acknowledgement. */
  get isPending(): boolean {
    return this.pendingWrites > 0
  }

  push({ entries, ...state }: CheckpointWrite): void {
    this.#state = { ...this.#state, ...state }
    for (const { mediaSequence, value } of entries) this.#entries.set(mediaSequence, value)
    // Entries that have left the window need not be written.
    for (const number of this.#entries.keys()) {
      if (number < state.first) this.#entries.delete(number)
    }
    this.touch()
  }

  /** Takes note that the registry has the stream. */
  confirm(): void {
    this.#knownMs = this.#options.clock.wallMs()
  }

  /** Writes the status of the stream, and learns whether another node owns it. */
  touch(): void {
    this.#changes++
    if (!this.#closing.signal.aborted) this.#sending ??= this.#send()
  }

  /** Lets another node claim the stream, whose numbers are used no more. */
  async yield(timeoutMs: number): Promise<void> {
    this.#isYielded = true
    this.touch()
    await this.flush(timeoutMs)
  }

  /** Waits for acknowledgements, of a stop too, within the time limit. @returns whether all changes have theirs */
  async flush(timeoutMs: number): Promise<boolean> {
    const open = Promise.all([this.#sending, this.#stopping])
    await withTimeout(open, timeoutMs, this.#options.timers).catch(() => undefined)
    return !this.isPending
  }

  /**
   * Tells the registry that the stream has ended, then closes.
   *
   * @param announce  called once the registry knows that this run is over; it is called again for as long as it throws
   */
  stop(reason: StopReason, announce: () => Promise<unknown>): Promise<void> {
    return (this.#stopping ??= this.#stop(reason, announce))
  }

  close(): void {
    this.#closing.abort()
    this.#entries.clear()
  }

  async #stop(reason: StopReason, announce: () => Promise<unknown>): Promise<void> {
    const { registry, streamId, ownership, run, lingerMs, timers } = this.#options
    const { signal } = this.#closing
    let waitMs = RETRY_MS.first
    for (let waitedMs = 0; waitedMs < STOP_MS && !signal.aborted; waitedMs += waitMs) {
      try {
        // The numbers of the last segments come first: a later run begins above them.
        if (this.isPending && this.#state !== undefined) await this.#advance()
        if (signal.aborted) return
        const options = { reason, run, by: ownership, lingerMs }
        let { outcome } = await registry.stop(streamId, options)
        if (outcome === 'unknown') {
          await this.#restore()
          outcome = (await registry.stop(streamId, options)).outcome
        }
        // Otherwise it goes on at another owner.
        if (outcome !== 'stale') await announce()
        break
      } catch {
        await timers.sleep(waitMs, signal).catch(() => undefined)
        waitMs = Math.min(2 * waitMs, RETRY_MS.max)
      }
    }
    this.close()
  }

  async #send(): Promise<void> {
    const { signal } = this.#closing
    // Changes of one turn of the event loop are one call.
    await Promise.resolve()
    let waitMs = RETRY_MS.first
    while (this.isPending && !signal.aborted) {
      try {
        await this.#advance()
        waitMs = RETRY_MS.first
      } catch {
        await this.#options.timers.sleep(waitMs, signal).catch(() => undefined)
        waitMs = Math.min(2 * waitMs, RETRY_MS.max)
      }
    }
    this.#sending = undefined
  }

  async #advance(): Promise<void> {
    const { registry, streamId, ownership, readStatus, readLeaseSince, onError } = this.#options
    const leaseSinceMs = readLeaseSince()
    const state = this.#state
    if (state === undefined) return this.#acknowledge(this.#changes, [])
    const changes = this.#changes
    const sent = [...this.#entries]
    const renditions = JSON.stringify(state.renditions)
    const { renditions: _, ...numbers } = state
    const whole = {
      ...numbers,
      serial: ++this.#serial,
      entries: inOrder(sent),
      status: readStatus(),
      isYielded: this.#isYielded,
      ...(leaseSinceMs !== undefined && { leaseSinceMs }),
      ...(renditions !== this.#knownRenditions && { renditions: state.renditions }),
    }
    const advanced = await registry.advance(streamId, ownership, whole).catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error
      onError(error)
      // Whatever does not fit, another owner has to know which numbers were used.
      const { renditions: __, ...known } = { ...whole, entries: [] }
      return registry.advance(streamId, ownership, known)
    })
    const settled = advanced.outcome === 'lost' ? await this.#restore() : advanced
    if (settled.outcome === 'stopped') this.#acknowledge(changes, sent)
    if (settled.outcome === 'stale' || settled.outcome === 'stopped') this.#lose(settled)
    else if (settled.outcome === 'lost') this.#lose({ outcome: 'forgotten' })
    else if (settled.outcome === 'accepted') {
      this.#knownRenditions = renditions
      this.#acknowledge(changes, sent)
      this.confirm()
      const { media, discontinuity } = settled.free
      const isOvertaken = media > state.free.media || discontinuity > state.free.discontinuity
      if (isOvertaken) this.#lose({ outcome: 'overtaken' })
    }
  }

  async #restore(): Promise<Advanced> {
    const { registry, streamId, ownership, readWhole, readStatus, clock, onRestored } =
      this.#options
    const awayMs = clock.wallMs() - this.#knownMs
    const whole = { ...readWhole(), serial: ++this.#serial, status: readStatus(), awayMs }
    const restored = await registry.restore(streamId, ownership, whole)
    if (restored.outcome === 'accepted') onRestored?.()
    return restored
  }

  #acknowledge(changes: number, sent: readonly (readonly [number, unknown])[]): void {
    this.#acknowledged = changes
    for (const [number, value] of sent) {
      if (this.#entries.get(number) === value) this.#entries.delete(number)
    }
  }

  #lose(loss: Loss): void {
    if (this.#closing.signal.aborted) return
    // A stream that was stopped has yet to tell its end.
    if (loss.outcome !== 'stopped') this.close()
    this.#options.onLost(loss)
  }
}

function inOrder(entries: readonly (readonly [number, unknown])[]): WindowEntry[] {
  return entries
    .toSorted(([a], [b]) => a - b)
    .map(([mediaSequence, value]) => ({ mediaSequence, value }))
}
