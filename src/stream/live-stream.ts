/**
 * A stream from start to stop: demuxed units in, segments and playlists out, over any number of encoder connections.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import type { Clock } from '../clock.ts'
import type { TrackPolicy } from '../hls/rendition/carried-tracks.ts'
import { LivePresentation } from '../hls/playlist/live-presentation.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import { ActiveWarnings } from '../diagnosis/active-warnings.ts'
import type { Fact } from '../diagnosis/warnings.ts'
import { Packager, type PackagerOutput } from '../hls/packager.ts'
import type { DateRange } from '../hls/playlist/playlist.ts'
import type { StreamFiles } from '../hls/store/file-store.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import type { Track } from '../mpegts/track.ts'
import { Publication, type Encoder, type LeaveReason } from './publication.ts'
import { reportTrack, type PlaylistReport, type StreamReport } from '../contract/report.ts'
import type { StopReason, StreamState } from '../contract/state.ts'
import { SteadyAudio } from '../hls/rendition/steady-audio.ts'
import { EventQueue, type StreamEvents } from './event-queue.ts'
import { LifeCycle } from './life-cycle.ts'
import { Totals } from './totals.ts'
import { MADE_UNIT_US, workOfPackaging } from './work.ts'
import { WorkBudget } from './work-budget.ts'

export interface LiveStreamOptions {
  readonly clock: Clock
  readonly cache: SegmentCache
  /** Name of this start of the stream, part of its segment URIs. */
  readonly epoch: string
  /** Numbers of its first segment; 0 unless told. */
  readonly sequenceStart?: SequenceNumbers
  readonly segmentSec: number
  readonly maxSegmentSec: number
  readonly playlistSegments: number
  /** Program to carry where an encoder names none; the first that has video unless told. */
  readonly program?: ProgramChoice | undefined
  /** `compatible` unless told. */
  readonly tracks?: TrackPolicy
  readonly lingerSec: number
  readonly reconnectGraceSec: number
  /** Limit of a publisher's payload, in bits per second; none unless told. */
  readonly maxBitrateBps?: number
  /** Work that its media may cost; a budget of its own unless told. */
  readonly budget?: WorkBudget
}

/**
 * Commands: `renewKey`, `publish`, `stop`, `discard`; `tick` lets time pass (4 times a second is plenty).
 * Questions: `status`, `live`, `files`, `report`. Events tell what happens.
 */
export class LiveStream extends EventEmitter<StreamEvents> {
  readonly id: string
  /** Receivers of its status updates. */
  webhookUrls: readonly string[] = []
  /** Passphrase of its own, with which its encoders must encrypt. A secret: no report holds it. */
  encryption: { readonly passphrase: string; readonly sinceSec: number } | undefined

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

  /** Its playlists and segments; empty once it is discarded. */
  get files(): StreamFiles {
    return this.#presentation.files
  }

  /** Encoder that is connected. */
  get encoder(): Encoder | undefined {
    return this.#publication?.encoder
  }

  /** First sequence numbers that the stream has not used. */
  get freeSequence(): SequenceNumbers {
    return this.#totals.freeSequence
  }

  /** Stopped, and the linger of its files is over. */
  get forgotten(): boolean {
    return this.#life.over
  }

  /** A key was issued for this stream: an encoder has the whole grace to come back with it. */
  renewKey(expiresAtMs: number): void {
    this.#life.renewKey(expiresAtMs)
  }

  /** Connects an encoder; one connected before is replaced. The stream must not be stopped. */
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

  /** Ends the stream: the encoder is disconnected, the playlist ends, files stay for the linger. */
  stop(reason: StopReason): void {
    if (this.status === 'STOPPED') return
    this.#events.run(() => {
      this.#life.stop()
      this.#dismiss('stopped')
      this.#take(this.#packager.end())
      this.#presentation.end()
      this.#events.push(() => this.emit('end', { reason }))
    })
  }

  /** Lets time pass: grace, key expiry, warnings about the encoder and its connection. */
  tick(): void {
    const { due } = this.#life
    if (due !== undefined) this.stop(due)
    this.#events.run(() => this.#watchSource(this.#options.clock.nowUs()))
    if (this.forgotten) this.discard()
  }

  /** Releases all files. */
  discard(): void {
    this.#presentation.discard()
  }

  report(): StreamReport {
    const publisher = this.encoder?.report()
    const { startedAtMs, liveSinceMs } = this.#life
    return {
      streamId: this.id,
      status: this.status,
      live: this.live,
      startedAt: new Date(startedAtMs),
      ...(liveSinceMs === undefined ? {} : { liveSince: new Date(liveSinceMs) }),
      ...(publisher === undefined ? {} : { publisher }),
      tracks: this.#tracks.map(reportTrack),
      playlist: this.#playlistReport,
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
      if (output.type === 'segment') this.#addSegment(output.segment)
      else if (output.type === 'renditions') this.#presentation.setRenditions(output.renditions)
      else if (output.type === 'date-range') this.#addDateRange(output.dateRange)
      else this.#report(output.fact)
    }
  }

  #addSegment(segment: Segment): void {
    const { clock, cache } = this.#options
    // The cache may refuse or release it before listeners are told of it.
    cache.slabs.retain(segment.chunks)
    this.#presentation.append(segment, clock.nowUs() / 1000)
    if (segment.rendition === 'main' && this.#totals.mainSegments === 0) {
      this.#audio.begin(segment.tracks)
    }
    this.#totals.addSegment(segment)
    if (segment.sizeBytes > 0) this.#events.push(() => this.#tellSegment(segment))
    if (this.status === 'STREAMING' && !this.live && this.#presentation.playable) {
      this.#life.goLive()
      this.#events.push(() => this.emit('live'))
    }
  }

  #tellSegment(segment: Segment): void {
    const { slabs } = this.#options.cache
    // Listeners keep what they get for as long as they like.
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

  #watchSource(nowUs: number): void {
    const figures = {
      ...this.#playlistReport,
      cutSegments: this.#totals.mainSegments,
      neededBytes: this.#options.cache.stats.neededBytes,
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
      // Its media may go on where it was, so that what is open stays open.
      this.#interrupt('no-media')
    }
  }

  /** Media of an encoder that was silent resumes the stream. */
  #resume(): void {
    if (this.status === 'INTERRUPTED' && this.#publication?.silent === false) this.#life.stream()
  }

  /** Ends the current publication and closes its connection. */
  #dismiss(reason: LeaveReason): void {
    const publication = this.#publication
    publication?.end(reason)
    publication?.encoder.close()
  }

  #left(publication: Publication, reason: LeaveReason, rest: readonly DemuxerOutput[]): void {
    if (this.#publication !== publication) return
    const interrupted = this.status === 'STREAMING' && reason !== 'replaced'
    // Segments cut from the rest do not make the stream live again.
    if (interrupted) this.#life.interrupt()
    this.#consume(rest)
    this.#take(this.#packager.discontinuity())
    this.#publication = undefined
    this.#warnings.observe([], this.#options.clock.nowUs())
    if (interrupted) this.#interrupt(reason)
    else this.#life.leaveLive()
  }

  #interrupt(reason: LeaveReason | 'no-media'): void {
    this.#life.interrupt()
    this.#presentation.files.rest()
    this.#events.push(() => this.emit('interrupted', { reason }))
  }
}
