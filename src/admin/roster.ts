/**
 * Rows of all streams, read a few at a time, and the part of them that a dashboard shows.
 *
 * @module
 */
import type { StreamControl } from '../api/control.ts'
import {
  ENCODER_SOURCES,
  maxLagMs,
  type EncoderSource,
  type PeerReport,
  type PublisherReport,
  type PushReport,
  type StreamPage,
} from '../api/records.ts'
import type {
  EncoderFigures,
  ListFilter,
  PushFigures,
  ReaderFigures,
  Snapshot,
  SourceFigures,
  StreamRow,
} from '../web/dashboard/wire.ts'

/** What comes before the next step: a promise, or a turn of the event loop. */
export type Turn = Promise<unknown> | void

/** Streams that are read at once: 50 records take 2 to 6 ms. */
const ROWS_PER_TURN = 50

/** Maximum number of rows, 1 to 2 KB each; those that come later by their ids are not shown. */
const MAX_ROWS = 5000

/** Maximum number of turns of `open` and of `read`. */
const OPENING_TURNS = 20
const READING_TURNS = 8

/** Number of streams above which `read` takes fewer turns: to find those of a turn costs a look at each. */
const MANY_STREAMS = 1000

/** Age at which rows are read again before they are shown. */
const MAX_AGE_MS = 10_000

/** Calling order: `open` when a dashboard opens, `read` once a second while one is open. */
export class Roster {
  readonly #control: Pick<StreamControl, 'list'>
  /** Rows of the last pass through all streams; undefined until its end. */
  #rows: readonly StreamRow[] | undefined
  /** Rows of the current pass. */
  #reading: StreamRow[] = []
  #after: string | undefined
  #last: StreamPage = { streams: [] }
  #publicUrl: string | undefined
  #readMs = -Infinity
  #isCut = false

  constructor(control: Pick<StreamControl, 'list'>) {
    this.#control = control
  }

  /** In the order of their ids. */
  get rows(): readonly StreamRow[] {
    return this.#rows ?? this.#reading
  }

  /** Whether there are more streams than `rows`. */
  get isCut(): boolean {
    return this.#rows === undefined ? this.#after !== undefined : this.#isCut
  }

  /** URL below which the service has `/video` and `/watch`; undefined without streams. */
  get publicUrl(): string | undefined {
    return this.#publicUrl
  }

  /** Load of the process; undefined until the service listens. */
  get service(): StreamPage['service'] {
    return this.#last.service
  }

  /** Reads the first rows, unless they were read a moment ago. */
  *open(timeMs: number): Generator<Turn> {
    if (Math.abs(timeMs - this.#readMs) < MAX_AGE_MS) return
    this.#rows = undefined
    this.#reading = []
    this.#after = undefined
    yield* this.#readOn(OPENING_TURNS, timeMs)
  }

  /** Reads on, at most to the last stream, a few streams at each step: packets are to be read between them. */
  *read(timeMs: number): Generator<Turn> {
    const share = Math.min(1, MANY_STREAMS / this.rows.length)
    yield* this.#readOn(Math.ceil(READING_TURNS * share), timeMs)
  }

  *#readOn(turns: number, timeMs: number): Generator<Turn> {
    this.#readMs = timeMs
    for (let turn = 0; turn < turns; turn++) {
      if (turn > 0) yield
      const after = this.#after
      const request = { ...(after !== undefined && { after }), limit: ROWS_PER_TURN }
      // While the registry of the cluster is away, the dashboard shows no streams.
      const page = yield* settled(this.#control.list(request), { streams: [] })
      this.#take(page)
      if (this.#after === undefined) return
    }
  }

  #take(page: StreamPage): void {
    this.#last = page
    const [first] = page.streams
    if (first !== undefined) this.#publicUrl = baseOf(first.masterUrl)
    this.#reading.push(...page.streams.map(rowOf))
    const isCut = page.next !== undefined && this.#reading.length >= MAX_ROWS
    this.#after = isCut ? undefined : page.next
    if (this.#after !== undefined) return
    this.#isCut = isCut
    this.#rows = this.#reading
    this.#reading = []
  }
}

/** Value of a promise, for which the iterator waits; `otherwise` if it is rejected. */
export function* settled<T>(value: T | Promise<T>, otherwise: T): Generator<Turn, T> {
  if (!(value instanceof Promise)) return value
  let result = otherwise
  yield value.then(
    (resolved) => void (result = resolved),
    () => undefined,
  )
  return result
}

/** Order of the states in the list: what runs, what needs somebody, what waits, what is over. */
const STATE_ORDER = ['LIVE', 'INTERRUPTED', 'STREAMING', 'READY', 'STOPPED'] as const

export const LIST_FILTERS = [...STATE_ORDER, 'WARNED'] as const satisfies readonly ListFilter[]

/** What the list is sorted by; rows without a value come last in either direction. */
export const SORT_VALUES = {
  state: (row) => STATE_ORDER.indexOf(stateOf(row)),
  id: ({ id }) => id,
  encoder: ({ encoder }) => encoder?.remote,
  bitrate: ({ encoder }) => encoder?.bitrateBps,
  rtt: ({ encoder }) => encoder?.rttMs,
  lost: ({ encoder }) => encoder?.packetsLost,
  dropped: ({ encoder }) => encoder?.packetsDropped,
  viewers: ({ viewers }) => viewers,
  warnings: ({ warnings }) => warnings.length,
} as const satisfies Readonly<Record<string, (row: StreamRow) => number | string | undefined>>

/** Part of the list that a dashboard shows. */
export interface ListView {
  readonly filter?: ListFilter
  /** Part of an id or of the address of an encoder, in lower case. */
  readonly search?: string
  /** Default: `state`. */
  readonly sort?: keyof typeof SORT_VALUES
  readonly isDescending?: true
  /** Counts from 0, which is the default. */
  readonly page?: number
}

/** Rows of a page: they have 10 to 20 KB. */
const PAGE_ROWS = 50

/** Page of the rows that a view is about; the last page instead of one beyond it. */
export function pageOf(
  rows: readonly StreamRow[],
  { filter, search = '', sort = 'state', isDescending, page = 0 }: ListView,
): Pick<Snapshot, 'rows' | 'page' | 'first' | 'matches' | 'counts'> {
  const found = rows.filter(
    (row) =>
      row.id.toLowerCase().includes(search) ||
      encodersOf(row).some(({ remote }) => remote.includes(search)),
  )
  const counts = Object.fromEntries(
    LIST_FILTERS.map((each) => [each, found.filter((row) => isIn(each, row)).length]),
  ) as Record<ListFilter, number>
  const matches = found
    .filter((row) => filter === undefined || isIn(filter, row))
    .map((row) => ({ row, value: SORT_VALUES[sort](row), state: SORT_VALUES.state(row) }))
    .toSorted(
      (one, other) =>
        compare(one.value, other.value, isDescending === true) || one.state - other.state,
    )
  const lastPage = Math.max(0, Math.ceil(matches.length / PAGE_ROWS) - 1)
  const shownPage = Math.min(page, lastPage)
  const first = shownPage * PAGE_ROWS
  return {
    rows: matches.slice(first, first + PAGE_ROWS).map(({ row }) => row),
    page: shownPage,
    first,
    matches: matches.length,
    counts: { ...counts, all: found.length },
  }
}

/** Figures of all encoders of a stream that are connected. */
export function encodersOf({ encoder, sources }: StreamRow): EncoderFigures[] {
  const all = sources?.map((each) => each.encoder) ?? [encoder]
  return all.filter((each) => each !== undefined)
}

function isIn(filter: ListFilter, row: StreamRow): boolean {
  return filter === 'WARNED' ? row.warnings.length > 0 : stateOf(row) === filter
}

function stateOf({ live, status }: StreamRow): (typeof STATE_ORDER)[number] {
  return live ? 'LIVE' : status
}

function compare<T extends number | string>(
  one: T | undefined,
  other: T | undefined,
  isDescending: boolean,
): number {
  if (one === other) return 0
  if (one === undefined) return 1
  if (other === undefined) return -1
  return one < other === isDescending ? 1 : -1
}

/** URL below which the service has `/video` and `/watch`. */
function baseOf(masterUrl: string): string {
  return masterUrl.replace(/\/video\/[^/]+\/[^/]+$/, '')
}

type ListedRecord = StreamPage['streams'][number]

/** Whether the stream has, or has had, other sources than a main encoder. */
function hasOthers({ sources, options, totals, warnings }: ListedRecord): boolean {
  return (
    sources.some(({ source }) => source === 'backup') ||
    Boolean(options.slate) ||
    totals.sourceChanges > 0 ||
    warnings.some(({ code }) => code === 'STANDBY_GONE')
  )
}

/** In order of priority. */
function sourcesOf({ onAir, sources, options }: ListedRecord): SourceFigures[] {
  const figuresOf = (source: EncoderSource): SourceFigures => {
    const found = sources.find((each) => each.source === source)
    if (found === undefined) return { source, state: 'AWAY' }
    const waiting = found.ready ? 'READY' : 'CONNECTED'
    const encoder = encoderOf(found.connection)
    return { source, state: source === onAir ? 'ON_AIR' : waiting, encoder }
  }
  const slate: SourceFigures = { source: 'slate', state: onAir === 'slate' ? 'ON_AIR' : 'READY' }
  const hasSlate = Boolean(options.slate) || onAir === 'slate'
  return [...ENCODER_SOURCES.map(figuresOf), ...(hasSlate ? [slate] : [])]
}

/** Row of the list: what an operator sees at a glance, in a tenth of the bytes of a record. */
function rowOf(record: ListedRecord): StreamRow {
  const { streamId, status, live, liveSince, publisher, onAir, viewers } = record
  const { pull, pushes, warnings, node, edges, playbackToken } = record
  return {
    id: streamId,
    status,
    live,
    ...(liveSince && { liveSinceMs: liveSince.getTime() }),
    ...(publisher && { encoder: encoderOf(publisher) }),
    ...(onAir && { onAir }),
    ...(hasOthers(record) && { sources: sourcesOf(record) }),
    ...(pull && { pull: peerInWords(pull) }),
    ...(pushes.length > 0 && { pushes: pushes.map(pushOf) }),
    viewers,
    warnings: warnings.map(({ code, message }) => ({ code, message })),
    ...(node !== undefined && { node }),
    ...(edges && { edges: edges.length, edgeLagMs: maxLagMs(edges) }),
    ...(record.readers.length > 0 && { readers: readersOf(record.readers) }),
    ...(playbackToken && { isProtected: true }),
  }
}

function peerInWords({ remote, state, error }: PeerReport): string {
  return [`${remote}, ${state.toLowerCase()}`, ...(error === undefined ? [] : [error])].join(': ')
}

function pushOf({ connection, ...report }: PushReport): PushFigures {
  const peer = peerInWords(report)
  if (connection === undefined) return { peer }
  const { bitrateBps, packetsDropped } = connection
  return { peer, bitrateBps, packetsDropped }
}

function readersOf(readers: ListedRecord['readers']): ReaderFigures {
  return {
    count: readers.length,
    bitrateBps: readers.reduce((sum, { bitrateBps }) => sum + bitrateBps, 0),
    packetsDropped: readers.reduce((sum, { packetsDropped }) => sum + packetsDropped, 0),
  }
}

function encoderOf(publisher: PublisherReport): EncoderFigures {
  const { remote, bitrateBps, peerVersion, rttMs, latencyMs } = publisher
  const { packetsReceived, packetsLost, packetsRetransmitted, packetsDropped, lines } = publisher
  return {
    remote,
    bitrateBps: Math.round(bitrateBps),
    version: peerVersion,
    rttMs: rttMs === undefined ? undefined : Math.round(rttMs * 10) / 10,
    latencyMs,
    packetsReceived,
    packetsLost,
    packetsRetransmitted,
    packetsDropped,
    ...(lines && { lines }),
  }
}
