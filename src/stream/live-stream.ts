/**
 * A stream from start to stop: demuxed units in, segments and playlists out, through as many encoder connections as
 * it takes. States are in `state.ts`.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import type { Clock } from '../clock.ts'
import type { TrackPolicy } from '../hls/rendition/carried-tracks.ts'
import { LivePresentation } from '../hls/playlist/live-presentation.ts'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import { Packager, type PackagerOutput } from '../hls/packager.ts'
import type { DateRange } from '../hls/playlist/playlist.ts'
import type { StreamFiles } from '../hls/store/file-store.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { Segment } from '../hls/store/segment.ts'
import { describeFact } from '../hls/source-warning.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import type { Track } from '../mpegts/track.ts'
import { Publication, type Encoder, type LeaveReason } from './publication.ts'
import {
  reportTrack,
  type PlaylistReport,
  type StreamReport,
  type Warning,
} from '../contract/report.ts'
import type { StopReason, StreamState } from '../contract/state.ts'
import { SteadySound } from '../hls/rendition/steady-audio.ts'
import { MADE_UNIT_US, workOfPackaging } from './work.ts'
import { WorkBudget } from './work-budget.ts'

/**
 * Events of a stream, in the words of the library. Each is told once the command or payload that caused it is done with,
 * in the order in which things happened: a listener may command the stream, and one that throws leaves it whole.
 */
export interface StreamEvents {
  /** A segment was cut; its bytes are shared with the cache and not to be changed. */
  segment: [segment: Segment]
  /** An encoder connected. */
  publish: [encoder: Encoder]
  /** The playlist can be played and grows; again after every interruption. */
  live: []
  /** The encoder is gone, or sends no media; the playlist waits for it. */
  interrupted: [event: { reason: LeaveReason | 'no-media' }]
  /** A condition of the source that an operator should mend; told when it begins. */
  warning: [warning: Warning]
  /** The stream is over. Last event. */
  end: [event: { reason: StopReason }]
}

export interface LiveStreamOptions {
  readonly clock: Clock
  readonly cache: SegmentCache
  /** Names this start of the stream in its segment URIs. */
  readonly epoch: string
  /** Of its first segment; 0 unless told. */
  readonly sequenceStart?: SequenceNumbers
  readonly segmentSec: number
  readonly maxSegmentSec: number
  readonly playlistSegments: number
  /** Which program is carried where an encoder does not say it; the first that has video unless told. */
  readonly program?: ProgramChoice | undefined
  /** Which tracks are carried; `compatible` unless told. */
  readonly tracks?: TrackPolicy
  readonly lingerSec: number
  readonly reconnectGraceSec: number
  /** Payload that a publisher may send, in bits a second; any unless told. */
  readonly maxBitrateBps?: number
  /** What its media may cost; one of its own unless told. */
  readonly budget?: WorkBudget
}

/**
 * Commands: `renewKey`, `publish`, `stop`; `tick` now and then (4 times a second is plenty) lets time pass.
 * Questions: `status`, `live`, `files`, `report`. What happens is told by events.
 */
export class LiveStream extends EventEmitter<StreamEvents> {
  readonly id: string
  /** Where status updates of this stream go. */
  webhookUrls: readonly string[] = []
  /** What its encoders must encrypt with, where it has a passphrase of its own. A secret: no report holds it. */
  encryption: { readonly passphrase: string; readonly sinceSec: number } | undefined

  readonly #options: LiveStreamOptions
  readonly #budget: WorkBudget
  readonly #sound: SteadySound
  readonly #packager: Packager
  readonly #presentation: LivePresentation
  readonly #startedAtMs: number
  readonly #warnings = new Map<string, Warning>()
  /** What happened and is not told yet. */
  readonly #untold: (() => void)[] = []
  /** A command is being carried out, or told of. */
  #active = false
  #state: StreamState = 'READY'
  /** By the clock that never jumps. */
  #keyExpiresAtUs = 0
  #publication: Publication | undefined
  #tracks: readonly Track[] = []
  #liveSinceMs: number | undefined
  /** When the encoder was lost, or a key issued after that. */
  #waitingSinceUs = 0
  #stoppedAtUs = 0
  #publishers = 0
  #segments = 0
  #mainSegments = 0
  #segmentBytes = 0
  #durationSec = 0
  #freeSequence: SequenceNumbers

  constructor(id: string, options: LiveStreamOptions) {
    super()
    this.id = id
    this.#options = options
    this.#freeSequence = options.sequenceStart ?? { media: 0, discontinuity: 0 }
    this.#startedAtMs = options.clock.wallMs()
    this.#budget = options.budget ?? new WorkBudget(options.clock.nowUs())
    this.#sound = new SteadySound(options.tracks ?? 'compatible')
    this.#packager = new Packager(options)
    this.#presentation = new LivePresentation(options)
  }

  get status(): StreamState {
    return this.#state
  }

  get live(): boolean {
    return this.#liveSinceMs !== undefined
  }

  /** Its playlists and segments; empty once it is discarded. */
  get files(): StreamFiles {
    return this.#presentation.files
  }

  /** The encoder connected now, if any. */
  get encoder(): Encoder | undefined {
    return this.#publication?.encoder
  }

  /** First sequence numbers that it has not used. */
  get freeSequence(): SequenceNumbers {
    return this.#freeSequence
  }

  /** Nothing of it can be asked for any more: stopped, and its linger is over. */
  get forgotten(): boolean {
    const { clock, lingerSec } = this.#options
    return this.#state === 'STOPPED' && clock.nowUs() - this.#stoppedAtUs >= lingerSec * 1e6
  }

  /** A key was issued for this stream; whoever asked for it has the whole grace to bring an encoder back. */
  renewKey(expiresAtMs: number): void {
    const { clock } = this.#options
    const nowUs = clock.nowUs()
    const expiresAtUs = nowUs + (expiresAtMs - clock.wallMs()) * 1000
    this.#keyExpiresAtUs = Math.max(this.#keyExpiresAtUs, expiresAtUs)
    this.#waitingSinceUs = nowUs
  }

  /** Connects an encoder; one connected before is replaced. The stream must not be stopped. */
  publish(encoder: Encoder): Publication {
    return this.#command(() => {
      this.#dismiss('replaced')
      this.#budget.restart()
      const options = { ...this.#options, budget: this.#budget }
      const publication = new Publication(encoder, options, {
        outputs: (outputs) =>
          this.#command(() => {
            this.#resume()
            this.#consume(outputs)
          }),
        left: (...leave) => this.#command(() => this.#left(...leave)),
      })
      this.#publication = publication
      this.#publishers++
      this.#state = 'STREAMING'
      this.#untold.push(() => this.emit('publish', encoder))
      return publication
    })
  }

  /** Ends the stream: the encoder is disconnected, the playlist ends, files stay for the linger. */
  stop(reason: StopReason): void {
    if (this.#state === 'STOPPED') return
    this.#command(() => {
      const { clock } = this.#options
      this.#state = 'STOPPED'
      this.#stoppedAtUs = clock.nowUs()
      this.#dismiss('stopped')
      this.#take(this.#packager.end())
      this.#presentation.end()
      this.#liveSinceMs = undefined
      this.#untold.push(() => this.emit('end', { reason }))
    })
  }

  /** Lets time pass: grace, key expiry, warnings about the encoder and its connection. */
  tick(): void {
    const { clock, reconnectGraceSec } = this.#options
    const nowUs = clock.nowUs()
    if (this.#state === 'INTERRUPTED' && nowUs - this.#waitingSinceUs >= reconnectGraceSec * 1e6) {
      this.stop('grace-expired')
    } else if (this.#state === 'READY' && nowUs >= this.#keyExpiresAtUs) {
      this.stop('key-expired')
    }
    this.#command(() => this.#watchSource(nowUs))
    if (this.forgotten) this.discard()
  }

  /** Releases all files. */
  discard(): void {
    this.#presentation.discard()
  }

  report(): StreamReport {
    const publisher = this.encoder?.report()
    return {
      streamId: this.id,
      status: this.#state,
      live: this.live,
      startedAt: new Date(this.#startedAtMs),
      ...(this.#liveSinceMs === undefined ? {} : { liveSince: new Date(this.#liveSinceMs) }),
      ...(publisher === undefined ? {} : { publisher }),
      tracks: this.#tracks.map(reportTrack),
      playlist: this.#playlistReport,
      totals: {
        segments: this.#segments,
        segmentBytes: this.#segmentBytes,
        durationSec: this.#durationSec,
        payloadsDropped: this.#budget.dropped,
        publishers: this.#publishers,
      },
      warnings: [...this.#warnings.values(), ...(this.#publication?.warnings ?? [])],
    }
  }

  #consume(outputs: readonly DemuxerOutput[]): void {
    const wallMs = this.#options.clock.wallMs()
    for (const output of outputs) {
      if (output.type === 'program') this.#tracks = output.program.tracks
      const steadied = this.#sound.push(output)
      this.#budget.spend(Math.max(0, steadied.length - 1) * MADE_UNIT_US)
      for (const steady of steadied) this.#take(this.#packager.push(steady, wallMs))
      if (output.type === 'program' && this.#sound.warning) this.#warn(this.#sound.warning)
    }
  }

  #take(outputs: readonly PackagerOutput[]): void {
    for (const output of outputs) {
      this.#budget.spend(workOfPackaging(output))
      if (output.type === 'segment') this.#addSegment(output.segment)
      else if (output.type === 'renditions') this.#presentation.setRenditions(output.renditions)
      else if (output.type === 'date-range') this.#addDateRange(output.dateRange)
      else this.#warn(output)
    }
  }

  #addSegment(segment: Segment): void {
    const { clock } = this.#options
    this.#presentation.append(segment, clock.nowUs() / 1000)
    if (segment.rendition === 'main') {
      if (this.#mainSegments === 0) this.#sound.begin(segment.tracks)
      this.#mainSegments++
      const { mediaSequence, discontinuitySequence } = segment
      this.#freeSequence = { media: mediaSequence + 1, discontinuity: discontinuitySequence + 1 }
      this.#durationSec += segment.durationSec
    }
    if (segment.sizeBytes > 0) {
      this.#segments++
      this.#segmentBytes += segment.sizeBytes
      this.#untold.push(() => this.emit('segment', segment))
    }
    if (this.#state === 'STREAMING' && !this.live && this.#presentation.playable) {
      this.#liveSinceMs = clock.wallMs()
      this.#untold.push(() => this.emit('live'))
    }
  }

  #addDateRange(dateRange: DateRange): void {
    if (!this.#presentation.addDateRange(dateRange))
      this.#warn(describeFact({ code: 'TOO_MANY_SPLICES' }))
  }

  #warn({ code, message }: Warning): void {
    const isKnown = this.#warnings.has(code)
    const warning = { code, message }
    this.#warnings.set(code, warning)
    if (!isKnown) this.#untold.push(() => this.emit('warning', warning))
  }

  get #playlistReport(): PlaylistReport {
    const { listedSegments, files } = this.#presentation
    const { releasedEarly, refused: gaps } = files.shortage
    return { listedSegments, wantedSegments: this.#options.playlistSegments, releasedEarly, gaps }
  }

  #watchSource(nowUs: number): void {
    const figures = {
      ...this.#playlistReport,
      cutSegments: this.#mainSegments,
      neededBytes: this.#options.cache.stats.neededBytes,
    }
    const publication = this.#publication
    for (const warning of publication?.observe(figures, nowUs) ?? []) {
      this.#untold.push(() => this.emit('warning', warning))
    }
    if (this.#budget.warning) this.#warn(this.#budget.warning)
    if (this.#budget.isExhausted(nowUs)) this.#dismiss('too-costly')
    else if (publication?.excess !== undefined) {
      this.#warn(publication.excess)
      this.#dismiss('bitrate-exceeded')
    } else if (publication?.silent === true && this.#state === 'STREAMING') {
      // Its media may go on where it was, so that what is open stays open.
      this.#interrupt('no-media')
    }
  }

  /** Media of an encoder that was silent goes on with the stream. */
  #resume(): void {
    if (this.#state === 'INTERRUPTED' && this.#publication?.silent === false) {
      this.#state = 'STREAMING'
    }
  }

  /** Ends the current publication and closes its connection. */
  #dismiss(reason: LeaveReason): void {
    const publication = this.#publication
    publication?.end(reason)
    publication?.encoder.close()
  }

  #left(publication: Publication, reason: LeaveReason, rest: readonly DemuxerOutput[]): void {
    if (this.#publication !== publication) return
    const interrupted = this.#state === 'STREAMING' && reason !== 'replaced'
    // What is cut from the rest still belongs to the time before the interruption.
    if (interrupted) this.#state = 'INTERRUPTED'
    this.#consume(rest)
    this.#take(this.#packager.discontinuity())
    this.#publication = undefined
    if (interrupted) this.#interrupt(reason)
    else this.#liveSinceMs = undefined
  }

  #interrupt(reason: LeaveReason | 'no-media'): void {
    this.#state = 'INTERRUPTED'
    this.#waitingSinceUs = this.#options.clock.nowUs()
    this.#liveSinceMs = undefined
    this.#presentation.files.rest()
    this.#untold.push(() => this.emit('interrupted', { reason }))
  }

  /** Carries out `work`, then tells what happened: not before, since a listener may give commands of its own. */
  #command<Result>(work: () => Result): Result {
    if (this.#active) return work()
    this.#active = true
    try {
      return work()
    } finally {
      try {
        for (let tell = this.#untold.shift(); tell !== undefined; tell = this.#untold.shift())
          tell()
      } finally {
        this.#active = false
      }
    }
  }
}
