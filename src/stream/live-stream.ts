/**
 * A stream from start to stop: demuxer outputs in, segments and playlists out, over any number of encoder connections.
 *
 * @module
 */
import { EventEmitter } from 'node:events'
import type { SequenceNumbers } from '../hls/cut/segment-plan.ts'
import type { CheckpointChange, StreamCheckpoint } from '../hls/playlist/checkpoint.ts'
import { ActiveWarnings } from '../diagnosis/active-warnings.ts'
import type { WarningFact } from '../diagnosis/warnings.ts'
import { Packager, type PackagerOutput, type PackagerStats } from '../hls/packager.ts'
import { LivePresentation } from '../hls/playlist/live-presentation.ts'
import { SteadyTracks } from '../hls/rendition/steady-tracks.ts'
import type { FileStore, StreamFiles } from '../hls/store/file-store.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import type { Track } from '../mpegts/track.ts'
import type { Demuxed } from './payload-log.ts'
import {
  Publication,
  type ConnectedEncoder,
  type Encoder,
  type LeaveReason,
} from './publication.ts'
import type {
  EncoderSource,
  InterruptionReason,
  PushEndReason,
  SourceName,
  StopReason,
  StreamReport,
  StreamState,
  StreamTotals,
  SwitchReason,
  Warning,
} from '../api/records.ts'
import { Readers, type Reader } from './readers.ts'
import { CheckpointFeed } from './checkpoint-feed.ts'
import { countDropped } from './dropped-media.ts'
import { reportPlaylist, reportStream } from './stream-report.ts'
import { EventQueue } from './event-queue.ts'
import { continueStream } from './continuation.ts'
import type { LiveStreamOptions, StreamConfiguration, StreamPolicy } from './live-stream-options.ts'
import { KeyExpiry, type ExpiringKey } from './key-expiry.ts'
import { LifeCycle } from './life-cycle.ts'
import { Slate } from './slate.ts'
import { Source } from './source.ts'
import { Sources, type SourceChange } from './sources.ts'
import { Totals } from './totals.ts'
import { workOfInsertion, workOfPackaging, workOfPlacing, workOfSamples } from './work-budget.ts'

/**
 * Media that a switch may repeat: it begins with a key frame of the past, so that no media is missing. More would add to the
 * latency of viewers with each switch. One GOP, however long, is better than a pause.
 */
const MAX_REPEATED_MS = 1500

/** Longest pause that the slate fills from its beginning. */
const MAX_FILLED_MS = 10_000

/** The slate is of the operator, and what is past of it comes in a burst. */
const UNLIMITED = { maxBitrateBps: Infinity }

/** Events of a stream. */
export interface StreamEvents {
  /** A segment is complete. The cache shares its bytes, which must not be changed. */
  segment: [segment: Segment]
  /** An encoder connected. */
  publish: [encoder: ConnectedEncoder]
  /** The playlist is playable and grows. Emitted again after an interruption or a replacement of the encoder. */
  live: []
  /** An encoder that was not on air disconnected. */
  'standby-lost': [event: { source: SourceName; reason: LeaveReason }]
  /** Another source is on air than before. */
  source: [event: { from: SourceName; to: SourceName; reason: SwitchReason }]
  /** The encoder disconnected or sends no media; the playlist stops growing until media arrives. */
  interrupted: [event: { reason: InterruptionReason }]
  /** The key of the connected encoder expires within 10 minutes. Emitted once for each key. */
  'key-expiring': [key: ExpiringKey]
  /** A warning begins: a problem that the operator should fix. */
  warning: [warning: Warning]
  /** A listener that the stream is sent to (`push_urls`) is connected, or lost. @param remote  `host:port` */
  push: [event: { remote: string; lost?: PushEndReason }]
  /** The stream is over. Last event. */
  end: [event: { reason: StopReason }]
}

/** Events of a stream, with those that are for the service alone. */
interface AllStreamEvents extends StreamEvents {
  /**
   * The checkpoint has changed. A segment is in it when it begins, before any part of it can be read. Emitted once for all
   * changes of a command.
   */
  checkpoint: [change: CheckpointChange]
  /** The settings that may change while it runs were given, for the first time or again. */
  configured: []
}

/**
 * `tick` about 4 times a second; at the end `stop`, then `discard`, or `leave` alone. Getters, `encoderOf` and `report` are
 * queries, the other methods are commands. Events: `AllStreamEvents`.
 *
 * ```
 * payloads ─► Publication ─┬─► SteadyTracks ─► Packager ─► LivePresentation ─► files
 *                          ├─► HotGop, which keeps the newest GOP while another source is on air
 *                          └─► Readers, payloads as they came
 * ```
 *
 * The work budget of the source pays for each stage.
 */
export class LiveStream extends EventEmitter<AllStreamEvents> {
  readonly id: string
  /** Identifies what is between a start and a stop, whichever processes serve it. */
  readonly run: string
  readonly #options: LiveStreamOptions
  readonly #steadyTracks: SteadyTracks
  readonly #packager: Packager
  readonly #presentation: LivePresentation
  readonly #totals: Totals
  readonly #feed: CheckpointFeed
  readonly #warnings = new ActiveWarnings((warning) =>
    this.#events.push(() => this.emit('warning', warning)),
  )
  readonly #events: EventQueue
  readonly #life: LifeCycle
  #configuration: StreamConfiguration
  readonly #sources: Sources
  readonly #readers = new Readers()
  readonly #keyExpiry = new KeyExpiry((key) =>
    this.#events.push(() => this.emit('key-expiring', key)),
  )
  /** Cost of packaging that a budget has paid. */
  #packagedUs = 0
  /** Number of frames dropped within which an encoder was cut off. */
  #cutFrames = 0
  #hasLeft = false
  #tracks: readonly Track[]

  constructor(id: string, options: LiveStreamOptions) {
    super()
    this.id = id
    this.#options = options
    this.#events = new EventQueue(options.onListenerError)
    this.#configuration = {
      webhookUrls: options.webhookUrls ?? [],
      encryption: undefined,
      pullUrl: undefined,
      pushUrls: [],
      policy: {},
    }
    const { clock, cache, continued } = options
    const earlier = continued && continueStream(continued.checkpoint, clock.wallMs())
    this.#life = new LifeCycle(options)
    this.run = continued?.run ?? nameRun(this.#life.startedAtMs, options.epoch)
    const { failoverMs = 500, failbackSec = 10, slateAfterSec = 2 } = options
    const rules = {
      failoverUs: failoverMs * 1000,
      failbackUs: failbackSec * 1e6,
      slateAfterUs: slateAfterSec * 1e6,
    }
    this.#sources = new Sources(rules, options.budget)
    const { formats = ['ts'], tracks: policy = 'compatible' } = options
    this.#steadyTracks = new SteadyTracks({ formats, policy }, earlier?.tracks)
    this.#packager = new Packager({ ...options, slabs: cache.slabs, ...earlier?.packager })
    this.#totals = new Totals(earlier?.packager.sequenceStart ?? options.sequenceStart)
    const onRow = (mediaSequence: number) => this.#feed.mark(mediaSequence)
    this.#presentation = new LivePresentation({ ...options, onRow })
    const source = { media: options, presentation: this.#presentation, totals: this.#totals }
    const onDue = () => this.#events.push(() => this.#emitCheckpoint())
    this.#feed = new CheckpointFeed(source, onDue)
    this.#tracks = earlier?.tracks ?? []
    if (earlier === undefined) return
    const mediaOf = continued?.mediaOf ?? (() => undefined)
    this.#presentation.restore(earlier.checkpoint, earlier.rows, { mediaOf, nowMs: this.#nowMs })
    if (earlier.begun) this.#life.interrupt('timeout')
  }

  /** What this process puts before the names of the files. */
  get epoch(): string {
    return this.#options.epoch
  }

  /** See `ContinuedStream.fence`; undefined outside a cluster. */
  get fence(): number | undefined {
    return this.#options.continued?.fence
  }

  get webhookUrls(): readonly string[] {
    return this.#configuration.webhookUrls
  }

  get encryption(): StreamConfiguration['encryption'] {
    return this.#configuration.encryption
  }

  /** Listeners that the stream is sent to. Secrets. */
  get pushUrls(): readonly string[] {
    return this.#configuration.pushUrls
  }

  /** Source that this service calls itself; undefined: none. A secret. */
  get pullUrl(): string | undefined {
    return this.#configuration.pullUrl
  }

  get policy(): StreamPolicy {
    return this.#configuration.policy
  }

  get status(): StreamState {
    return this.#life.state
  }

  /** See `LifeCycle.stateSinceMs`. */
  get stateSinceMs(): number {
    return this.#life.stateSinceMs
  }

  /** See `LifeCycle.stopsAtMs`. */
  get stopsAtMs(): number | undefined {
    return this.#life.stopsAtMs
  }

  get live(): boolean {
    return this.#life.liveSinceMs !== undefined
  }

  /** See `PlayableStream.isBeginning`. */
  get isBeginning(): boolean {
    return !this.#presentation.playable
  }

  /** Playlists and segments; empty after `discard`. */
  get files(): StreamFiles {
    return this.#presentation.files
  }

  /** Takes further playlists, and media that has left the cache. */
  get archived(): Pick<FileStore, 'replace' | 'setOlder'> {
    return this.#presentation.files
  }

  /** Source on air; undefined while there is none. */
  get onAir(): SourceName | undefined {
    return this.#sources.onAir?.name
  }

  /** Encoder on air or, if there is none, the main one or else the backup. */
  get encoder(): Encoder | undefined {
    const { onAir } = this.#sources
    if (onAir !== undefined && onAir.name !== 'slate') return onAir.encoder
    return this.encoderOf('main') ?? this.encoderOf('backup')
  }

  encoderOf(source: EncoderSource): Encoder | undefined {
    return this.#sources.find(source)?.encoder
  }

  /** Lowest sequence numbers that the stream has not used. */
  get freeSequence(): SequenceNumbers {
    return this.#totals.freeSequence
  }

  /** State with which another process can continue the stream. */
  get checkpoint(): StreamCheckpoint {
    return this.#feed.checkpoint
  }

  /**
   * Keeps the rows from this number on in the checkpoint, 100 at most that would have left it: what goes on with the stream
   * elsewhere has no other record of them.
   */
  keepRowsFrom(mediaSequence: number): void {
    this.#presentation.keepRowsFrom(mediaSequence)
  }

  /** Whether the stream has stopped and the linger of its files is over. */
  get forgotten(): boolean {
    return this.#life.over
  }

  /** Whether another process continues the stream. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Replaces the settings that are given. Another `preferredSource` goes on air at its next key frame. */
  configure(changes: Partial<StreamConfiguration>): void {
    this.#configuration = { ...this.#configuration, ...changes }
    const { preferredSource = 'main', alwaysOn = false, slate = '' } = this.policy
    this.#sources.prefer(preferredSource)
    this.#life.keepUntilKeyExpires((alwaysOn && slate !== '') || this.pullUrl !== undefined)
    this.#events.run(() => this.#events.push(() => this.emit('configured')))
  }

  /** Puts an encoder on air at its next key frame, and fails back to it from now on. */
  switchSource(preferredSource: EncoderSource): void {
    this.configure({ policy: { ...this.policy, preferredSource } })
    this.#sources.request()
  }

  /** Records a new stream key, and restarts the reconnect grace. */
  renewKey(expiresAtMs: number): void {
    this.#life.renewKey(expiresAtMs)
  }

  /** Connects an encoder, which replaces the connected one of its kind. The stream must not be stopped. */
  publish(encoder: Encoder): Publication {
    return this.#events.run(() => {
      const name = encoder.source ?? 'main'
      this.#sources.find(name)?.dismiss('replaced')
      const source = this.#connect(name, encoder)
      this.#totals.addPublisher()
      const { onAir } = this
      if (onAir === undefined || onAir === 'slate') {
        this.#warnings.clear()
        this.#life.stream()
      }
      this.#events.push(() => this.emit('publish', encoder))
      if (onAir === undefined) this.#putOnAir({ to: source, reason: 'lost' })
      return source.publication
    })
  }

  /**
   * Disconnects the encoders, which may connect again; at an overload of two, the one on air stays.
   *
   * @param keyId  of the encoders to disconnect; default: all
   */
  disconnect(reason: 'overloaded' | 'kicked' | 'draining', keyId?: string): void {
    this.#events.run(() => {
      const { encoders, onAir } = this.#sources
      const kept = reason === 'overloaded' && encoders.length > 1 ? onAir : undefined
      for (const source of encoders) {
        const isMeant = keyId === undefined || source.encoder.keyId === keyId
        if (isMeant && source !== kept) source.dismiss(reason)
      }
    })
  }

  /** Sends the transport stream to a reader as it comes, from the next key frame on. The stream must not be stopped. */
  read(reader: Reader): void {
    this.#readers.add(reader, this.#options.clock.nowUs())
  }

  /** The reader has disconnected. */
  unread(reader: Reader): void {
    this.#readers.delete(reader)
  }

  /** Disconnects the readers, which may connect again. */
  closeReaders(): void {
    this.#readers.close()
  }

  /** Number of readers that have called. */
  get readers(): number {
    return this.#readers.reported
  }

  /** A listener that the stream is sent to is connected or, with a reason, lost. @param remote  `host:port` */
  reportPush(remote: string, lost?: PushEndReason): void {
    if (this.status === 'STOPPED') return
    const event = { remote, ...(lost && { lost }) }
    this.#events.run(() => this.#events.push(() => this.emit('push', event)))
  }

  /** The encoder has gone with the process that the stream continues; no event once another one is here. */
  reportInterruption(): void {
    if (this.status === 'STREAMING' || this.status === 'STOPPED') return
    this.#events.run(() => this.#events.push(() => this.emit('interrupted', { reason: 'timeout' })))
  }

  /** Warns the operator of what was seen elsewhere. */
  warn(fact: WarningFact): void {
    this.#events.run(() => this.#report(fact))
  }

  /** Ends a warning of calls that fail: the peer is connected. @param remote  `host:port` */
  endWarning(code: 'PULL_FAILING' | 'PUSH_FAILING', remote: string): void {
    this.#warnings.end(code, (fact) => 'remote' in fact && fact.remote === remote)
  }

  /** Ends the stream: disconnects the encoder and ends the playlist. Files stay available for the linger. */
  stop(reason: StopReason): void {
    if (this.status === 'STOPPED') return
    this.#events.run(() => {
      this.#life.stop()
      for (const source of this.#sources.all) source.dismiss('stopped')
      this.#readers.close()
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
    this.#events.run(() => {
      this.#playSlate()
      this.#watchSources(this.#options.clock.nowUs())
    })
    if (this.forgotten) this.discard()
  }

  /** Gives the stream up, since another process continues it: no event, no EXT-X-ENDLIST, no files. */
  leave(): void {
    this.removeAllListeners()
    this.#hasLeft = true
    this.#life.stop()
    for (const source of this.#sources.all) {
      this.#sources.remove(source)
      source.dismiss('stopped')
    }
    this.#readers.close()
    this.discard()
  }

  discard(): void {
    this.#presentation.discard()
  }

  /** Counters of the packager, with what was dropped on the way to it. */
  get packaging(): PackagerStats {
    const { stats } = this.#packager
    const { droppedVideoPackets, droppedAudioPackets } = this.#steadyTracks
    return {
      ...stats,
      damagedPackets: stats.damagedPackets + this.#cutFrames,
      packetsBeforeStart: stats.packetsBeforeStart + droppedVideoPackets,
      droppedAudioPackets: stats.droppedAudioPackets + droppedAudioPackets,
    }
  }

  report(): StreamReport {
    return reportStream({
      id: this.id,
      life: this.#life,
      encoder: this.encoder,
      sources: this.#sources,
      tracks: this.#tracks,
      gopSec: this.#packager.gopSec,
      presentation: this.#presentation,
      wantedSegments: this.#options.playlistSegments,
      queuedBytes: this.#queuedBytes,
      readers: this.#readers.report(),
      totals: this.#reportTotals(),
      warnings: this.#warnings.list,
    })
  }

  #reportTotals(): StreamTotals {
    const { payloadsDropped: payloads, demuxed } = this.#sources
    return this.#totals.report({
      dropped: countDropped({ payloads, demuxed, packaged: this.packaging }),
      packetsDamaged: demuxed.damagedUnits,
      srtBytesSent: this.#readers.sentBytes,
    })
  }

  #connect(name: SourceName, encoder: Encoder): Source {
    const budget = this.#sources.budgetOf(name, this.#options.clock.nowUs())
    budget.restart()
    const publication = new Publication(
      encoder,
      { ...this.#options, budget, ...(name === 'slate' && UNLIMITED) },
      {
        pushed: (payload, demuxed) => this.#pass(source, payload, demuxed),
        outputs: (outputs) => this.#events.run(() => this.#receive(source, outputs)),
        left: (...leave) => this.#events.run(() => this.#left(source, ...leave)),
      },
    )
    const source = new Source(name, publication)
    this.#sources.add(source)
    return source
  }

  /** Passes a payload on to the readers, or keeps it for them until its source is on air. */
  #pass(source: Source, payload: Buffer, demuxed: Demuxed): void {
    const { log } = source
    if (this.#readers.size === 0) log.clear()
    else if (source !== this.#sources.onAir) log.push(payload, demuxed)
    else this.#readers.push(payload, demuxed, log, this.#options.clock.nowUs())
  }

  #receive(source: Source, outputs: readonly DemuxerOutput[]): void {
    const { dateMs: wallMs = this.#options.clock.wallMs() } = source.encoder
    const isOnAir = source === this.#sources.onAir
    source.handle(outputs, wallMs, isOnAir)
    for (const output of outputs)
      if (output.type === 'program') this.#sources.setTracks(source, output.program.tracks)
    if (isOnAir) {
      this.#resume()
      this.#consume(outputs, wallMs)
    } else this.#switchIfDue()
  }

  #switchIfDue(): void {
    const change = this.#nextSource()
    if (change === undefined) return
    const wallMs = this.#options.clock.wallMs()
    const { onAir } = this.#sources
    if (change.reason === 'lost' && onAir !== undefined)
      this.#consume(onAir.publication.takeOpen(), wallMs)
    if (onAir !== undefined) this.#endTimeline(wallMs)
    this.#putOnAir(change)
  }

  #nextSource(): SourceChange | undefined {
    if (this.status === 'STOPPED') return undefined
    const slate = this.#sources.onAir?.encoder
    if (slate instanceof Slate && slate.isBehind) return undefined
    const { failback = true } = this.policy
    return this.#sources.next(this.#options.clock.nowUs(), {
      failback,
      hasSlate: this.#slate !== undefined,
    })
  }

  /** Bytes of the slate, if it may be on air: after an encoder, or also before the first one. */
  get #slate(): Buffer | undefined {
    const { slate, alwaysOn = false } = this.policy
    if (!slate || (this.status === 'READY' && !alwaysOn)) return undefined
    return this.#options.readSlate?.(slate)
  }

  /** Ends the timeline of a source that is no longer on air. */
  #endTimeline(replacedMs: number | undefined): void {
    this.#take(this.#packager.discontinuity(replacedMs))
    this.#steadyTracks.reset()
  }

  #putOnAir({ to, reason }: SourceChange): void {
    const source = to === 'slate' ? this.#openSlate() : to
    const from = this.#sources.putOnAir(source)
    this.#readers.switchTo(source.log, this.#options.clock.nowUs())
    const { name } = source
    if (from !== undefined) {
      this.#totals.addSourceChange()
      this.#events.push(() => this.emit('source', { from, to: name, reason }))
    }
    if (name === 'slate') this.#interrupt('no-media')
    else if (this.status === 'INTERRUPTED' && source.gop.begun) this.#life.stream()
    const repeatedMs = this.#packager.dateMs - source.gop.beganMs
    const { gopSec = 0 } = this.#packager
    if (repeatedMs > Math.max(MAX_REPEATED_MS, gopSec * 1000)) source.gop.clear()
    for (const { output, wallMs } of source.gop.take()) this.#consume([output], wallMs)
  }

  /**
   * The slate begins where the media before it ended: to Shaka 5.2, media that lacks more than a second is late for as long
   * as it is listed, and may all be out of its window.
   */
  #openSlate(): Source {
    const { clock } = this.#options
    const { dateMs } = this.#packager
    const wallMs = clock.wallMs()
    const startMs = dateMs < wallMs - MAX_FILLED_MS ? wallMs : Math.min(dateMs, wallMs)
    return this.#connect('slate', new Slate(this.#slate!, clock, startMs))
  }

  #playSlate(): void {
    const source = this.#sources.onAir
    if (!(source?.encoder instanceof Slate)) return
    if (source.encoder.bytes !== this.#slate) source.dismiss('stopped')
    else for (const payload of source.encoder.takeDue()) source.publication.push(payload)
  }

  #consume(outputs: readonly DemuxerOutput[], wallMs: number): void {
    for (const output of outputs) {
      if (output.type === 'program') this.#tracks = output.program.tracks
      // A part that ends before its next frame has arrived lets players ask for one that the switch takes away.
      if (output.type === 'header' && this.#sources.awaitsKeyFrame) continue
      const steady = this.#steadyTracks.push(output)
      if (steady.length !== 1 || steady[0] !== output)
        this.#sources.spend(workOfInsertion(output, steady))
      for (const each of steady) this.#take(this.#packager.push(each, wallMs))
    }
  }

  #take(outputs: readonly PackagerOutput[]): void {
    const { sampleStats, placingStats } = this.#packager
    const packagedUs = workOfSamples(sampleStats) + workOfPlacing(placingStats)
    this.#sources.spend(packagedUs - this.#packagedUs)
    this.#packagedUs = packagedUs
    for (const output of outputs) {
      this.#sources.spend(workOfPackaging(output))
      switch (output.type) {
        case 'part':
          this.#presentation.appendPart(output.part)
          break
        case 'segment':
          this.#addSegment(output.segment)
          break
        case 'start':
          this.#feed.mark()
          this.#totals.startSegment(output.start)
          this.#presentation.start(output.start)
          break
        case 'renditions':
          this.#feed.mark()
          this.#presentation.setRenditions(output.renditions)
          break
        case 'target':
          this.#feed.mark()
          this.#presentation.setTarget(output.targetSec, output.partTargetSec)
          this.#goLiveIfPlayable()
          break
        case 'date-range':
          // Without room it is not in the checkpoint, which would be sent again for each section.
          if (this.#presentation.addDateRange(output.dateRange)) this.#feed.mark()
          else this.#report({ code: 'TOO_MANY_SPLICES', points: 1 })
          break
        case 'fact':
          this.#report(output.fact)
          break
      }
    }
  }

  #addSegment(segment: Segment): void {
    if (!this.#steadyTracks.begun) this.#steadyTracks.begin(this.#packager.tracks)
    this.#presentation.files.reserve(this.#queuedBytes)
    // Retains the memory for the listeners: the cache may refuse or release the segment before they are called.
    this.#options.cache.slabs.hold(segment.chunks)
    this.#presentation.append(segment, this.#nowMs)
    this.#totals.addSegment(segment)
    if (segment.sizeBytes > 0) this.#events.push(() => this.#emitSegment(segment))
    this.#goLiveIfPlayable()
  }

  #emitCheckpoint(): void {
    if (this.listenerCount('checkpoint') > 0) this.emit('checkpoint', this.#feed.take())
    else this.#feed.clear()
  }

  #goLiveIfPlayable(): void {
    if (this.status !== 'STREAMING' || this.onAir === 'slate') return
    if (this.live || !this.#presentation.playable) return
    this.#life.goLive()
    this.#events.push(() => this.emit('live'))
  }

  #emitSegment(segment: Segment): void {
    const { slabs } = this.#options.cache
    // Pinned memory is never reused, since listeners may retain segments.
    if (this.listenerCount('segment') > 0) slabs.pin(segment.chunks)
    try {
      this.emit('segment', segment)
    } finally {
      slabs.release(segment.chunks)
    }
  }

  #report(fact: WarningFact): void {
    this.#warnings.report(fact, this.#options.clock.nowUs())
  }

  /** Time of the monotonic clock of the cache. */
  get #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  get #queuedBytes(): number {
    return this.#packager.queuedBytes + this.#sources.queuedBytes + this.#steadyTracks.heldBytes
  }

  #watchSources(nowUs: number): void {
    this.#presentation.files.reserve(this.#queuedBytes)
    const { neededBytes, maxBytes, advisedBytes } = this.#options.cache.stats
    const figures = {
      ...reportPlaylist(this.#presentation, this.#options.playlistSegments),
      cutSegments: this.#totals.mainSegments,
      short: neededBytes > maxBytes,
      advisedBytes,
    }
    const facts = this.#sources.factsAt(nowUs)
    for (const source of this.#sources.all) {
      const observed = source.publication.observe(figures, nowUs)
      if (source === this.#sources.onAir)
        facts.push(...observed, ...this.#packager.facts, ...this.#steadyTracks.facts)
      else if (this.onAir !== 'slate') facts.push(...factsOfStandby(source.name, observed))
      facts.push(...this.#keyExpiry.observe(source.encoder, this.#options.clock.wallMs()))
    }
    this.#warnings.observe(facts, nowUs)
    for (const source of this.#sources.all) this.#dismissIfExcessive(source, nowUs)
    this.#switchIfDue()
    const isPausing = this.#sources.areSilent && this.status === 'STREAMING'
    if (isPausing) this.#interrupt('no-media')
    if (this.onAir === 'slate') return
    // The open segment stays open: media may continue on the same timeline.
    if (isPausing || this.#life.lost) {
      this.#take(this.#packager.settle())
      this.#presentation.settle()
    }
    if (isPausing) this.#presentation.files.markIdle()
  }

  #dismissIfExcessive(source: Source, nowUs: number): void {
    const { excess } = source.publication
    if (this.#sources.budgetOf(source.name, nowUs).isExhausted(nowUs)) source.dismiss('too-costly')
    else if (excess !== undefined) {
      this.#report(excess)
      source.dismiss('bitrate-exceeded')
    }
  }

  #interrupt(reason: InterruptionReason): void {
    if (this.status !== 'STREAMING') return
    this.#life.interrupt(reason)
    this.#events.push(() => this.emit('interrupted', { reason }))
  }

  /** Resumes the stream when media of a silent encoder arrives. */
  #resume(): void {
    const { onAir } = this.#sources
    if (
      this.status === 'INTERRUPTED' &&
      onAir?.name !== 'slate' &&
      onAir?.publication.silent === false
    )
      this.#life.stream()
  }

  #left(source: Source, reason: LeaveReason, rest: readonly DemuxerOutput[]): void {
    const wasOnAir = source === this.#sources.onAir
    if (!this.#sources.remove(source)) return
    const isExpected = reason === 'replaced' || reason === 'stopped'
    if (!wasOnAir) {
      if (isExpected) return
      const isWaiting = this.onAir === 'slate' && this.#sources.encoders.length === 0
      if (isWaiting) this.#interrupt(reason)
      else this.#events.push(() => this.emit('standby-lost', { source: source.name, reason }))
      return
    }
    const { clock } = this.#options
    const wallMs = clock.wallMs()
    const due = reason === 'replaced' ? undefined : this.#nextSource()
    // The slate waits for the next look, after the interruption.
    const next = due?.to === 'slate' ? undefined : due
    const isLost = this.status === 'STREAMING' && next === undefined
    const lost = isLost && !isExpected ? reason : undefined
    // First, so that segments cut from `rest` do not make the stream live again.
    if (lost !== undefined) this.#life.interrupt(lost)
    const whole = rest.filter(isWhole)
    this.#cutFrames += rest.length - whole.length
    this.#consume(whole, wallMs)
    this.#endTimeline(reason === 'replaced' || next !== undefined ? wallMs : undefined)
    if (next !== undefined) {
      this.#putOnAir(next)
      return
    }
    this.#warnings.observe([], clock.nowUs())
    this.#presentation.files.markIdle()
    this.#life.leaveLive()
    if (lost !== undefined) this.#events.push(() => this.emit('interrupted', { reason: lost }))
  }
}

/** @returns for example `20260102T030405Z-{id}` */
export function nameRun(startedAtMs: number, id: string): string {
  return `${new Date(startedAtMs).toISOString().replace(/[-:]|\.\d+/g, '')}-${id}`
}

/** Of an encoder that is not on air, only its line counts: nobody sees its media. */
function factsOfStandby(source: SourceName, facts: readonly WarningFact[]): WarningFact[] {
  return facts.flatMap((fact) =>
    fact.code === 'LOSSES_NOT_REPAIRED' ? { ...fact, code: 'STANDBY_LOSES', source } : [],
  )
}

/** An encoder that has gone may have been cut off within a frame, at which a decoder fails. */
function isWhole(output: DemuxerOutput): boolean {
  return output.type !== 'unit' || output.unit.track.kind !== 'video' || !output.unit.damaged
}
