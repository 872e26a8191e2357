/**
 * A stream from start to stop: demuxer outputs in, segments and playlists out, over any number of encoder connections.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { StreamManifest } from '../hls/manifest.ts'
import { ActiveWarnings } from '../diagnosis/active-warnings.ts'
import type { Fact } from '../diagnosis/warnings.ts'
import type { PackagerOutput } from '../hls/packager.ts'
import type { StreamFiles } from '../hls/store/file-store.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { Track } from '../mpegts/track.ts'
import { Publication, type Encoder, type LeaveReason } from './publication.ts'
import type { StreamReport } from '../contract/report.ts'
import type { StopReason, StreamState } from '../contract/state.ts'
import { StreamPlaylists } from './stream-playlists.ts'
import { reportPlaylist, reportStream } from './stream-report.ts'
import type { StreamTerms } from './stream-terms.ts'
import { EventQueue } from './event-queue.ts'
import { continueStream } from './continuation.ts'
import type { StreamEvents } from './stream-events.ts'
import type { LiveStreamOptions } from './live-stream-options.ts'
import { LifeCycle } from './life-cycle.ts'
import { MeteredPackager } from './metered-packager.ts'
import { WorkBudget } from './work-budget.ts'

/**
 * Commands: `renewKey`, `publish`, `disconnect`, `stop`, `leave`, `discard`, and `tick` about 4 times a second. Queries:
 * `status`, `live`, `files`, `encoder`, `freeSequence`, `manifest`, `hasLeft`, `forgotten`, `report`. Events: `StreamEvents`.
 */
export class LiveStream extends EventEmitter<StreamEvents> {
  readonly id: string
  webhookUrls: readonly string[] = []
  /** Encryption required of encoders. The passphrase is a secret: no report contains it. */
  encryption: { readonly passphrase: string; readonly sinceSec: number } | undefined
  terms: StreamTerms = {}
  readonly #options: LiveStreamOptions
  readonly #budget: WorkBudget
  readonly #packager: MeteredPackager
  readonly #playlists: StreamPlaylists
  readonly #warnings = new ActiveWarnings((warning) =>
    this.#events.push(() => this.emit('warning', warning)),
  )
  readonly #events = new EventQueue()
  readonly #life: LifeCycle
  #publication: Publication | undefined
  #hasLeft = false
  #tracks: readonly Track[]

  constructor(id: string, options: LiveStreamOptions) {
    super()
    this.id = id
    this.#options = options
    const { clock, cache, continued } = options
    const earlier = continued && continueStream(continued.manifest, clock.wallMs())
    this.#life = new LifeCycle(options)
    this.#budget = options.budget ?? new WorkBudget(clock.nowUs())
    const packaging = { ...options, slabs: cache.slabs, ...earlier?.packager }
    this.#packager = new MeteredPackager(packaging, this.#budget, earlier?.tracks)
    this.#playlists = new StreamPlaylists(options, earlier, () =>
      this.#events.push(() => this.#emitManifest()),
    )
    this.#tracks = earlier?.tracks ?? []
    if (earlier?.begun === true) this.#life.interrupt()
  }

  get status(): StreamState {
    return this.#life.state
  }

  get live(): boolean {
    return this.#life.liveSinceMs !== undefined
  }

  /** Playlists and segments; empty after `discard`. */
  get files(): StreamFiles {
    return this.#playlists.presentation.files
  }

  get encoder(): Encoder | undefined {
    return this.#publication?.encoder
  }

  /** Lowest sequence numbers that the stream has not used. */
  get freeSequence(): SequenceNumbers {
    return this.#playlists.totals.freeSequence
  }

  /** What another process needs to continue the stream. */
  get manifest(): StreamManifest {
    return this.#playlists.manifest
  }

  /** Whether the stream has stopped and the linger of its files is over. */
  get forgotten(): boolean {
    return this.#life.over
  }

  /** Whether another process continues the stream. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Records a new stream key, and restarts the reconnect grace. */
  renewKey(expiresAtMs: number): void {
    this.#life.renewKey(expiresAtMs)
  }

  /** Connects an encoder, which replaces the connected one. The stream must not be stopped. */
  publish(encoder: Encoder): Publication {
    return this.#events.run(() => {
      this.#dismiss('replaced')
      this.#warnings.clear()
      this.#budget.restart()
      const options = { ...this.#options, budget: this.#budget }
      const publication = new Publication(encoder, options, {
        outputs: (outputs) =>
          this.#events.run(() => {
            this.#resume()
            this.#consume(outputs)
          }),
        left: (...leave) => this.#events.run(() => this.#left(...leave)),
      })
      this.#publication = publication
      this.#playlists.totals.addPublisher()
      this.#life.stream()
      this.#events.push(() => this.emit('publish', encoder))
      return publication
    })
  }

  /** Disconnects the encoder, which may connect again. */
  disconnect(reason: 'overloaded' | 'kicked' | 'draining'): void {
    this.#events.run(() => this.#dismiss(reason))
  }

  /** Ends the stream: disconnects the encoder and ends the playlist. Files stay available for the linger. */
  stop(reason: StopReason): void {
    if (this.status === 'STOPPED') return
    this.#events.run(() => {
      this.#life.stop()
      this.#dismiss('stopped')
      this.#take(this.#packager.end())
      this.#playlists.presentation.end()
      this.#warnings.clear()
      this.#events.push(() => this.emit('end', { reason }))
    })
  }

  /** Enforces the time limits of the stream and the limits on its encoder, and updates the warnings. */
  tick(): void {
    const { due } = this.#life
    if (due !== undefined) this.stop(due)
    this.#events.run(() => this.#watchSource(this.#options.clock.nowUs()))
    if (this.forgotten) this.discard()
  }

  /** Gives the stream up, since another process continues it: no event, no EXT-X-ENDLIST, no files. */
  leave(): void {
    const publication = this.#publication
    this.removeAllListeners()
    this.#hasLeft = true
    this.#publication = undefined
    this.#life.stop()
    publication?.end('stopped')
    publication?.encoder.close()
    this.discard()
  }

  discard(): void {
    this.#playlists.presentation.discard()
  }

  report(): StreamReport {
    return reportStream({
      id: this.id,
      life: this.#life,
      encoder: this.encoder,
      tracks: this.#tracks,
      presentation: this.#playlists.presentation,
      wantedSegments: this.#options.playlistSegments,
      queuedBytes: this.#queuedBytes,
      totals: this.#playlists.totals.report(this.#budget.dropped),
      warnings: this.#warnings.list,
    })
  }

  #consume(outputs: readonly DemuxerOutput[]): void {
    const wallMs = this.#options.clock.wallMs()
    for (const output of outputs) {
      if (output.type === 'program') this.#tracks = output.program.tracks
      this.#take(this.#packager.push(output, wallMs))
    }
  }

  #take(outputs: readonly PackagerOutput[]): void {
    for (const output of outputs) {
      if (output.type === 'fact') this.#report(output.fact)
      else if (output.type === 'segment') this.#addSegment(output)
      else if (!this.#playlists.take(output)) this.#report({ code: 'TOO_MANY_SPLICES', points: 1 })
      if (output.type === 'target') this.#goLiveIfPlayable()
    }
  }

  #addSegment(output: Extract<PackagerOutput, { readonly type: 'segment' }>): void {
    const { segment } = output
    this.#playlists.presentation.files.reserve(this.#queuedBytes)
    // Retains the memory for the listeners: the cache may refuse or release the segment before they are called.
    this.#options.cache.slabs.hold(segment.chunks)
    this.#playlists.take(output)
    if (segment.sizeBytes > 0) this.#events.push(() => this.#emitSegment(segment))
    this.#goLiveIfPlayable()
  }

  #emitManifest(): void {
    const isHeard = this.listenerCount('manifest') > 0
    const change = this.#playlists.takeChange({ isHeard })
    if (change !== undefined) this.emit('manifest', change)
  }

  #goLiveIfPlayable(): void {
    if (this.status !== 'STREAMING' || this.live || !this.#playlists.presentation.playable) return
    this.#life.goLive()
    this.#events.push(() => this.emit('live'))
  }

  #emitSegment(segment: Segment): void {
    const { slabs } = this.#options.cache
    // Pinned memory is never reused, since listeners may retain segments.
    if (this.listenerCount('segment') > 0) slabs.pin(segment.chunks)
    this.emit('segment', segment)
    slabs.release(segment.chunks)
  }

  #report(fact: Fact): void {
    this.#warnings.report(fact, this.#options.clock.nowUs())
  }

  get #queuedBytes(): number {
    return this.#packager.queuedBytes + (this.#publication?.queuedBytes ?? 0)
  }

  #watchSource(nowUs: number): void {
    this.#playlists.presentation.files.reserve(this.#queuedBytes)
    const { neededBytes, maxBytes, advisedBytes } = this.#options.cache.stats
    const figures = {
      ...reportPlaylist(this.#playlists.presentation, this.#options.playlistSegments),
      cutSegments: this.#playlists.totals.mainSegments,
      short: neededBytes > maxBytes,
      advisedBytes,
    }
    const publication = this.#publication
    const facts: Fact[] = [...this.#budget.factsAt(nowUs)]
    if (publication !== undefined) {
      facts.push(...publication.observe(figures, nowUs))
      facts.push(...this.#packager.facts)
    }
    this.#warnings.observe(facts, nowUs)
    if (this.#budget.isExhausted(nowUs)) this.#dismiss('too-costly')
    else if (publication?.excess !== undefined) {
      this.#report(publication.excess)
      this.#dismiss('bitrate-exceeded')
    } else if (publication?.silent === true && this.status === 'STREAMING') {
      this.#life.interrupt()
      // The open segment stays open: media may continue on the same timeline.
      this.#take(this.#packager.settle())
      this.#playlists.presentation.files.rest()
      this.#events.push(() => this.emit('interrupted', { reason: 'no-media' }))
    }
    if (this.#life.lost) this.#take(this.#packager.settle())
  }

  /** Resumes the stream when media of a silent encoder arrives. */
  #resume(): void {
    if (this.status === 'INTERRUPTED' && this.#publication?.silent === false) this.#life.stream()
  }

  #dismiss(reason: LeaveReason): void {
    const publication = this.#publication
    publication?.end(reason)
    publication?.encoder.close()
  }

  #left(publication: Publication, reason: LeaveReason, rest: readonly DemuxerOutput[]): void {
    if (this.#publication !== publication) return
    const interrupted = this.status === 'STREAMING' && reason !== 'replaced'
    // First, so that segments cut from `rest` do not make the stream live again.
    if (interrupted) this.#life.interrupt()
    this.#consume(rest)
    const replacedMs = reason === 'replaced' ? this.#options.clock.wallMs() : undefined
    this.#take(this.#packager.discontinuity(replacedMs))
    this.#publication = undefined
    this.#warnings.observe([], this.#options.clock.nowUs())
    this.#playlists.presentation.files.rest()
    this.#life.leaveLive()
    if (interrupted) this.#events.push(() => this.emit('interrupted', { reason }))
  }
}
