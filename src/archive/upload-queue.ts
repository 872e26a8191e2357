/**
 * Queue of uploads to the store, and of looks there, which are repeated until they succeed: a bounded number at a time, in
 * turns of their owners, within a bound on memory. When that is full, the owner that holds the most loses its newest task.
 *
 * @module
 */

/** Max number of requests at a time. */
const MAX_ACTIVE = 12

/** Number of failed tasks of an owner that pause, with which it begins no others; other owners do. */
const MAX_FAILING = 3

/** Pause after the first failure and, since it doubles, the longest one, in milliseconds. */
const RETRY_MS = { first: 1000, longest: 60_000 }

/**
 * Number of failures of a task before its pause doubles. A store that refuses one request in five takes nearly every file
 * within these, and until then the process alone has the media, and may die. A store that throttles, or never takes a file,
 * gets at most four requests more for each file than if the pause doubled at once.
 */
const EARLY_FAILURES = 5

export interface StoreTask {
  /** Memory that the task keeps. One without any never gives way to others. */
  readonly chunks: readonly Buffer[]
  /** Whether it may begin, and what is queued behind it; asked again whenever a task of any owner ends. Default: at once. */
  readonly isDue?: () => boolean
  /**
   * @param signal  aborted when the task is dropped
   * @returns whether the store has it; undefined: to be tried again
   * @throws an error, after which it is tried again
   */
  readonly attempt: (signal: AbortSignal) => Promise<boolean | undefined>
  /** Called once, when the task needs its memory no more: whether the store has it, undefined if the task was dropped. */
  readonly onDone: (isStored: boolean | undefined) => void
}

/** Memory that tasks keep: whole slabs, which segments share with the ones next to them. */
class KeptMemory {
  /** Number of views by the memory that they are in. */
  readonly #views = new Map<ArrayBufferLike, number>()
  #sizeBytes = 0

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Size that it would have with these chunks, too. */
  sizeWith(chunks: readonly Buffer[]): number {
    let sizeBytes = this.#sizeBytes
    for (const buffer of new Set(chunks.map((chunk) => chunk.buffer)))
      if (!this.#views.has(buffer)) sizeBytes += buffer.byteLength
    return sizeBytes
  }

  keep(chunks: readonly Buffer[]): void {
    this.#sizeBytes = this.sizeWith(chunks)
    for (const { buffer } of chunks) this.#views.set(buffer, (this.#views.get(buffer) ?? 0) + 1)
  }

  release(chunks: readonly Buffer[]): void {
    for (const { buffer } of chunks) {
      const views = this.#views.get(buffer)! - 1
      if (views > 0) this.#views.set(buffer, views)
      else {
        this.#views.delete(buffer)
        this.#sizeBytes -= buffer.byteLength
      }
    }
  }
}

interface QueuedTask extends StoreTask {
  readonly dropped: AbortController
  /** Pause after its next failure. */
  pauseMs: number
  failures: number
}

interface Owner {
  /** The oldest first; those that are neither queued nor pause are active. */
  readonly tasks: Set<QueuedTask>
  readonly queued: QueuedTask[]
  /** Those that pause since they have failed, and since what they look for is not there. */
  readonly failing: Set<QueuedTask>
  readonly looking: Set<QueuedTask>
  readonly memory: KeptMemory
}

interface UploadQueueOptions {
  readonly maxBytes: number
  /** Draws a number from 0 to 1. */
  readonly random: () => number
  /** Resolves after so many milliseconds, or earlier if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Called after each failure. */
  readonly onError: (error: unknown) => void
  /** Called after each success. */
  readonly onSuccess: () => void
}

/** `add` tasks, `abandon` an owner, `close` all. */
export class UploadQueue<Key extends object> {
  readonly #options: UploadQueueOptions
  /** The owner at the front has its turn. */
  readonly #owners = new Map<Key, Owner>()
  #isClosed = false
  /** Number of attempts, with those of dropped tasks. */
  #attempts = 0

  constructor(options: UploadQueueOptions) {
    this.#options = options
  }

  get sizeBytes(): number {
    let sum = 0
    for (const { memory } of this.#owners.values()) sum += memory.sizeBytes
    return sum
  }

  sizeOf(key: Key): number {
    return this.#owners.get(key)?.memory.sizeBytes ?? 0
  }

  /**
   * @param isFirst  whether it goes before the other tasks of its owner
   * @returns false if there is no memory for it, or all has been closed
   */
  add(key: Key, task: StoreTask, isFirst = false): boolean {
    if (this.#isClosed) return false
    const owner = this.#owners.get(key) ?? {
      tasks: new Set(),
      queued: [],
      failing: new Set(),
      looking: new Set(),
      memory: new KeptMemory(),
    }
    if (!this.#makeRoom(owner, task.chunks)) return false
    this.#owners.set(key, owner)
    const added = {
      ...task,
      dropped: new AbortController(),
      pauseMs: RETRY_MS.first,
      failures: 0,
    }
    owner.tasks.add(added)
    owner.memory.keep(task.chunks)
    if (isFirst) owner.queued.unshift(added)
    else owner.queued.push(added)
    this.#start()
    return true
  }

  /** Drops all tasks of an owner. */
  abandon(key: Key): void {
    const owner = this.#owners.get(key)
    for (const task of owner?.tasks ?? []) this.#drop(key, owner!, task)
  }

  close(): void {
    this.#isClosed = true
    for (const key of this.#owners.keys()) this.abandon(key)
  }

  /** There is room if there would be, were the others cut down to what this owner would hold. */
  #makeRoom(requester: Owner, chunks: readonly Buffer[]): boolean {
    const { maxBytes } = this.#options
    const { sizeBytes: heldBytes } = requester.memory
    const ownBytes = requester.memory.sizeWith(chunks)
    const others = [...this.#owners].filter(([, owner]) => owner !== requester)
    let cutBytes = ownBytes
    for (const [, { memory }] of others) cutBytes += Math.min(memory.sizeBytes, ownBytes)
    if (cutBytes > maxBytes) return false
    while (this.sizeBytes - heldBytes + ownBytes > maxBytes) {
      const [fullest, owner] = others.reduce((a, b) =>
        a[1].memory.sizeBytes < b[1].memory.sizeBytes ? b : a,
      )
      const newest = [...owner.tasks].findLast((task) => task.chunks.length > 0)
      this.#drop(fullest, owner, newest!)
    }
    return true
  }

  #start(): void {
    for (const [key, owner] of this.#owners) {
      if (this.#attempts >= MAX_ACTIVE) return
      if (owner.failing.size >= MAX_FAILING) continue
      const [task] = owner.queued
      if (task === undefined || task.isDue?.() === false) continue
      owner.queued.shift()
      this.#owners.delete(key)
      this.#owners.set(key, owner)
      void this.#run(key, owner, task)
    }
  }

  async #run(key: Key, owner: Owner, task: QueuedTask): Promise<void> {
    const { signal } = task.dropped
    this.#attempts++
    let isStored: boolean | undefined
    let pausing = owner.looking
    try {
      isStored = await task.attempt(signal)
      this.#options.onSuccess()
    } catch (error) {
      pausing = owner.failing
      if (++task.failures <= EARLY_FAILURES) task.pauseMs = RETRY_MS.first
      if (!signal.aborted) this.#options.onError(error)
    }
    this.#attempts--
    if (isStored === undefined && !signal.aborted) void this.#pause(owner, task, pausing)
    else {
      if (!signal.aborted) this.#release(key, owner, task)
      task.onDone(isStored)
    }
    this.#start()
  }

  async #pause(owner: Owner, task: QueuedTask, pausing: Set<QueuedTask>): Promise<void> {
    const { random, pause } = this.#options
    const { signal } = task.dropped
    pausing.add(task)
    await pause(task.pauseMs * (0.5 + random() / 2), signal)
    if (signal.aborted) return
    pausing.delete(task)
    task.pauseMs = Math.min(2 * task.pauseMs, RETRY_MS.longest)
    if (pausing === owner.failing) owner.queued.unshift(task)
    else owner.queued.push(task)
    this.#start()
  }

  #drop(key: Key, owner: Owner, task: QueuedTask): void {
    this.#release(key, owner, task)
    task.dropped.abort()
    const index = owner.queued.indexOf(task)
    if (index >= 0) owner.queued.splice(index, 1)
    // An active one is done when its attempt has ended.
    const isPausing = owner.failing.delete(task) || owner.looking.delete(task)
    if (index >= 0 || isPausing) task.onDone(undefined)
  }

  #release(key: Key, owner: Owner, task: QueuedTask): void {
    owner.memory.release(task.chunks)
    owner.tasks.delete(task)
    if (owner.tasks.size === 0) this.#owners.delete(key)
  }
}
