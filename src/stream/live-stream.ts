/**
 * A stream from start to stop: demuxer outputs in, segments and playlists out, over any number of encoder connections.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import { LivePresentation } from '../hls/playlist/live-presentation.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import { ActiveWarnings } from '../diagnosis/active-warnings.ts'
import type { Fact } from '../diagnosis/warnings.ts'
import { Packager, type PackagerOutput } from '../hls/packager.ts'
import type { DateRange } from '../hls/date-range.ts'
import type { StreamFiles } from '../hls/store/file-store.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { Track } from '../mpegts/track.ts'
import { Publication, type Encoder, type LeaveReason } from './publication.ts'
import { reportTrack, type PlaylistReport, type StreamReport } from '../contract/report.ts'
import type { StopReason, StreamState } from '../contract/state.ts'
import { SteadyAudio } from '../hls/rendition/steady-audio.ts'
import type { StreamTerms } from './stream-terms.ts'
import { EventQueue } from './event-queue.ts'
import { describeLatency } from './latency.ts'
import type { StreamEvents } from './stream-events.ts'
import type { LiveStreamOptions } from './live-stream-options.ts'
import { LifeCycle } from './life-cycle.ts'
import { Totals } from './totals.ts'
import { MADE_UNIT_US, workOfPackaging } from './work.ts'
import { WorkBudget } from './work-budget.ts'

/**
 * Commands: `renewKey`, `publish`, `disconnect`, `stop`, `discard`, and `tick` about 4 times a second. Queries:
 * `status`, `live`, `files`, `encoder`, `freeSequence`, `forgotten`, `report`. Events: `StreamEvents`.
 */
export class LiveStream extends EventEmitter<StreamEvents> {
  readonly id: string
  webhookUrls: readonly string[] = []
  /** Encryption required of encoders. The passphrase is a secret: no report contains it. */
  encryption: { readonly passphrase: string; readonly sinceSec: number } | undefined
  terms: StreamTerms = {}
  readonly #options: LiveStreamOptions
  readonly #budget: WorkBudget
  readonly #audio: SteadyAudio
  readonly #packager: Packager
  readonly #presentation: LivePresentation
  readonly #warnings = new ActiveWarnings((warning) =>
    this.#events.push(() => this.emit('warning', warning)),
  )
  readonly #events = new EventQueue()
  readonly #life: LifeCycle
  readonly #totals: Totals
  #publication: Publication | undefined
  #tracks: readonly Track[] = []

  constructor(id: string, options: LiveStreamOptions) {
    super()
    this.id = id
    this.#options = options
    this.#life = new LifeCycle(options)
    this.#totals = new Totals(options.sequenceStart)
    this.#budget = options.budget ?? new WorkBudget(options.clock.nowUs())
    this.#audio = new SteadyAudio(options.tracks ?? 'compatible')
    this.#packager = new Packager({ ...options, slabs: options.cache.slabs })
    this.#presentation = new LivePresentation(options)
  }

  get status(): StreamState {
    return this.#life.state
  }

  get live(): boolean {
    return this.#life.liveSinceMs !== undefined
  }

  /** Playlists and segments; empty after `discard`. */
  get files(): StreamFiles {
    return this.#presentation.files
  }

  get encoder(): Encoder | undefined {
    return this.#publication?.encoder
  }

  /** Lowest sequence numbers that the stream has not used. */
  get freeSequence(): SequenceNumbers {
    return this.#totals.freeSequence
  }

  /** Whether the stream has stopped and the linger of its files is over. */
  get forgotten(): boolean {
    return this.#life.over
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
      this.#totals.addPublisher()
      this.#life.stream()
      this.#events.push(() => this.emit('publish', encoder))
      return publication
    })
  }

  /** Disconnects the encoder, which may connect again. */
  disconnect(reason: 'overloaded' | 'kicked'): void {
    this.#events.run(() => this.#dismiss(reason))
  }

  /** Ends the stream: disconnects the encoder and ends the playlist. Files stay available for the linger. */
  stop(reason: StopReason): void {
    if (this.status === 'STOPPED') return
    this.#events.run(() => {
      this.#life.stop()
      this.#dismiss('stopped')
      this.#take(this.#packager.end())
      this.#presentation.end()
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

  discard(): void {
    this.#presentation.discard()
  }

  report(): StreamReport {
    const publisher = this.encoder?.report()
    const { startedAtMs, liveSinceMs } = this.#life
    const { targets } = this.#presentation
    return {
      streamId: this.id,
      status: this.status,
      live: this.live,
      startedAt: new Date(startedAtMs),
      ...(liveSinceMs === undefined ? {} : { liveSince: new Date(liveSinceMs) }),
      ...(publisher === undefined ? {} : { publisher }),
      tracks: this.#tracks.map(reportTrack),
      playlist: this.#playlistReport,
      ...(targets && { latency: describeLatency(targets, publisher?.latencyMs ?? 0) }),
      queuedBytes: this.#queuedBytes,
      totals: this.#totals.report(this.#budget.dropped),
      warnings: this.#warnings.list,
    }
  }

  #consume(outputs: readonly DemuxerOutput[]): void {
    const wallMs = this.#options.clock.wallMs()
    for (const output of outputs) {
      if (output.type === 'program') this.#tracks = output.program.tracks
      const steadied = this.#audio.push(output)
      this.#budget.spend(Math.max(0, steadied.length - 1) * MADE_UNIT_US)
      for (const steady of steadied) this.#take(this.#packager.push(steady, wallMs))
    }
  }

  #take(outputs: readonly PackagerOutput[]): void {
    for (const output of outputs) {
      this.#budget.spend(workOfPackaging(output))
      if (output.type === 'part') this.#presentation.appendPart(output.part)
      else if (output.type === 'segment') this.#addSegment(output.segment)
      else if (output.type === 'target') {
        this.#presentation.setTarget(output.targetSec, output.partTargetSec)
        this.#goLiveIfPlayable()
      } else if (output.type === 'renditions') this.#presentation.setRenditions(output.renditions)
      else if (output.type === 'date-range') this.#addDateRange(output.dateRange)
      else this.#report(output.fact)
    }
  }

  #addSegment(segment: Segment): void {
    const { clock, cache } = this.#options
    this.#presentation.files.reserve(this.#queuedBytes)
    // Retains the memory for the listeners: the cache may refuse or release the segment before they are called.
    cache.slabs.hold(segment.chunks)
    this.#presentation.append(segment, clock.nowUs() / 1000)
    if (segment.rendition === 'main' && this.#totals.mainSegments === 0) {
      this.#audio.begin(segment.tracks)
    }
    this.#totals.addSegment(segment)
    if (segment.sizeBytes > 0) this.#events.push(() => this.#emitSegment(segment))
    this.#goLiveIfPlayable()
  }

  #goLiveIfPlayable(): void {
    if (this.status !== 'STREAMING' || this.live || !this.#presentation.playable) return
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

  #addDateRange(dateRange: DateRange): void {
    if (!this.#presentation.addDateRange(dateRange))
      this.#report({ code: 'TOO_MANY_SPLICES', points: 1 })
  }

  #report(fact: Fact): void {
    this.#warnings.report(fact, this.#options.clock.nowUs())
  }

  get #playlistReport(): PlaylistReport {
    const { listedSegments, files } = this.#presentation
    const { releasedEarly, refused: gaps } = files.shortage
    return { listedSegments, wantedSegments: this.#options.playlistSegments, releasedEarly, gaps }
  }

  get #queuedBytes(): number {
    return this.#packager.queuedBytes + (this.#publication?.queuedBytes ?? 0)
  }

  #watchSource(nowUs: number): void {
    this.#presentation.files.reserve(this.#queuedBytes)
    const { neededBytes, maxBytes, advisedBytes } = this.#options.cache.stats
    const figures = {
      ...this.#playlistReport,
      cutSegments: this.#totals.mainSegments,
      short: neededBytes > maxBytes,
      advisedBytes,
    }
    const publication = this.#publication
    const facts: Fact[] = [...this.#budget.factsAt(nowUs)]
    if (publication !== undefined) {
      facts.push(...publication.observe(figures, nowUs))
      facts.push(...this.#packager.facts, ...this.#audio.facts)
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
      this.#presentation.files.rest()
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
    this.#take(this.#packager.discontinuity())
    this.#audio.reset()
    this.#publication = undefined
    this.#warnings.observe([], this.#options.clock.nowUs())
    this.#presentation.files.rest()
    this.#life.leaveLive()
    if (interrupted) this.#events.push(() => this.emit('interrupted', { reason }))
  }
}
