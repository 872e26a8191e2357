/**
 * The scripts of the outboxes in TypeScript, over maps, beside those of the registry. `model.test.ts` holds it equal to the
 * scripts.
 *
 * @module
 */
import type { StopReason } from '../../api/records.ts'
import type { EndedRun, OutboxChanges, OutboxCounts, OutboxEvent, RunName } from './outboxes.ts'

export interface OutboxModelOptions {
  readonly nowMs: () => number
  readonly server: () => string
  readonly holdsLease: (node: string) => boolean
  readonly isSettled: (node: string) => boolean
  readonly isKnownToBeGone: (node: string) => boolean
}

/** End of a run that no event has announced. */
interface End {
  readonly owner: string
  readonly reason: StopReason
  /** As JSON; '' for those of `DEFAULT_WEBHOOK_URLS`. */
  readonly webhookUrls: string
  /** When any node may announce it. */
  readonly dueMs: number
}

interface Outbox {
  readonly texts: Map<string, string>
  expiresAtMs: number
}

const ANNOUNCE_MS = 5000
const OUTBOX_MS = 1_200_000

export class OutboxModel {
  readonly #options: OutboxModelOptions
  /** By stream id and run. */
  ends = new Map<string, End>()
  /** Nodes that deliver the events, by outbox. */
  holders = new Map<string, string>()
  outboxes = new Map<string, Outbox>()

  constructor(options: OutboxModelOptions) {
    this.#options = options
  }

  /** Forgets what time has ended. */
  expire(nowMs: number): void {
    for (const [name, { expiresAtMs }] of this.outboxes) {
      if (expiresAtMs <= nowMs) this.outboxes.delete(name)
    }
  }

  /** As `stop.lua` does. */
  end({ streamId, run }: RunName, end: Omit<End, 'dueMs'>): void {
    const { nowMs, holdsLease } = this.#options
    const dueMs = nowMs() + (holdsLease(end.owner) ? ANNOUNCE_MS : 0)
    this.ends.set(`${streamId} ${run}`, { ...end, dueMs })
  }

  update(node: string, { events, over }: OutboxChanges): OutboxCounts {
    this.expire(this.#options.nowMs())
    for (const { outbox, id } of over) this.#remove(outbox, id)
    for (const event of events) this.#put(node, event)
    const { server, holdsLease, isSettled, isKnownToBeGone } = this.#options
    const counts = new Map<string, number>()
    for (const [outbox, holder] of this.holders) {
      const count = this.outboxes.get(outbox)?.texts.size ?? 0
      if (count === 0) {
        this.holders.delete(outbox)
        continue
      }
      const isFree = !holdsLease(holder) && (isSettled(node) || isKnownToBeGone(holder))
      const isTaken = holdsLease(node) && (isFree || outbox === node)
      if (isTaken) this.holders.set(outbox, node)
      if (isTaken || holder === node || outbox === node) counts.set(outbox, count)
    }
    return { server: server(), counts }
  }

  read(outbox: string): OutboxEvent[] {
    this.expire(this.#options.nowMs())
    return [...(this.outboxes.get(outbox)?.texts ?? [])].map(([id, text]) => ({ id, text }))
  }

  unannounced(node: string, limit: number): EndedRun[] {
    const { isSettled } = this.#options
    const nowMs = this.#options.nowMs()
    return [...this.ends]
      .filter(([, { dueMs, owner }]) => dueMs <= nowMs && (isSettled(node) || owner === node))
      .toSorted(([a, { dueMs: x }], [b, { dueMs: y }]) => x - y || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([name, { reason, webhookUrls }]) => {
        const [streamId = '', run] = name.split(' ')
        const urls = webhookUrls === '' ? undefined : (JSON.parse(webhookUrls) as string[])
        return { streamId, run: Number(run), reason, webhookUrls: urls }
      })
  }

  announce({ streamId, run }: RunName, node: string, event?: OutboxEvent): boolean {
    const nowMs = this.#options.nowMs()
    const name = `${streamId} ${run}`
    const end = this.ends.get(name)
    if (end === undefined) return false
    if (end.owner !== node && end.dueMs > nowMs) return false
    this.ends.delete(name)
    if (event !== undefined) this.#put(node, event)
    return true
  }

  #put(node: string, { id, text }: OutboxEvent): void {
    const expiresAtMs = this.#options.nowMs() + OUTBOX_MS
    const texts = this.outboxes.get(node)?.texts ?? new Map<string, string>()
    this.outboxes.set(node, { texts: texts.set(id, text), expiresAtMs })
    if (!this.holders.has(node)) this.holders.set(node, node)
  }

  #remove(outbox: string, id: string): void {
    const texts = this.outboxes.get(outbox)?.texts
    texts?.delete(id)
    if (texts?.size === 0) this.outboxes.delete(outbox)
  }
}
