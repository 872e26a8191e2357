/**
 * Chooses the carried program of a transport stream: the program with a given number; the first program in PAT order
 * that has video, or the first one if none has; or all programs joined into one. A chosen program is carried for as
 * long as the PAT lists it.
 *
 * @module
 */
import type { DemuxerStats } from './demuxer-stats.ts'
import { ProgramList, type ProgramAssociation } from '../psi/pat.ts'
import { decodePmt, type ProgramMap, type StreamEntry } from '../psi/pmt.ts'
import type { ProgramChoice } from '../program-choice.ts'
import type { SectionFields } from '../psi/section.ts'
import { describeTrack } from '../psi/describe-track.ts'

/** Maximum number of programs whose maps are read, more than any multiplex has. */
const MAX_PROGRAMS = 1024

/** Number of joined streams from which no more programs are joined, since each change processes all joined streams. */
const MAX_STREAMS = 256

/** Maximum credit: enough for 8 changes at once of a PMT with 1012 bytes, the maximum, or for 150 with 50 bytes. */
const MAX_CREDIT = 32_768

/** Basic price of each change of a table, in packets of table credit. */
const PACKETS_PER_CHANGE = 16

/** Additional prices of a map that may change the carried program: for each byte of the map, and each joined stream. */
const PACKETS_PER_BYTE = 4
const PACKETS_PER_STREAM = 8

interface Candidate {
  readonly mapPid: number
  /** Section body that `map` was decoded from. */
  body?: Buffer
  map?: ProgramMap
}

/** Inputs: `handlePat` and `handlePmt` with every valid section. */
export class ProgramSelector {
  readonly #choice: ProgramChoice
  readonly #stats: DemuxerStats
  readonly #list = new ProgramList()
  readonly #credit = new TableCredit()
  /** Candidates by program number, in PAT order. */
  #candidates = new Map<number, Candidate>()
  #listed: readonly number[] = []
  /** Numbers of the carried programs. */
  #carried: readonly number[] = []
  #carriedStreams = 0
  /** Number of candidates with a map. */
  #knownMaps = 0
  /** Whether the choice was made under the current PAT. */
  #isSettled = false

  /** @param stats  counts ignored changes; its packet count earns table credit */
  constructor(choice: ProgramChoice, stats: DemuxerStats) {
    this.#choice = choice
    this.#stats = stats
  }

  /** Numbers of all programs in PAT order; empty before the first PAT. */
  get listed(): readonly number[] {
    return this.#listed
  }

  /** @returns whether PIDs of program maps may have changed */
  handlePat(section: SectionFields): boolean {
    const programs = this.#list.push(section, (count) => this.#pay(count))
    if (programs === undefined) return false
    this.#listed = [...new Set(programs.map(({ programNumber }) => programNumber))]
    const before = this.#candidates
    this.#candidates = new Map(
      this.#choose(programs).map(({ programNumber, mapPid }) => {
        const known = before.get(programNumber)
        return [programNumber, known?.mapPid === mapPid ? known : { mapPid }]
      }),
    )
    const isSame =
      this.#candidates.size === before.size &&
      [...this.#candidates].every(
        ([programNumber, candidate]) => before.get(programNumber) === candidate,
      )
    if (isSame) return false
    this.#isSettled = false
    this.#knownMaps = [...this.#candidates.values()].filter(({ map }) => map !== undefined).length
    return true
  }

  /** PIDs of the candidates' program maps. */
  get mapPids(): Set<number> {
    return new Set([...this.#candidates.values()].map(({ mapPid }) => mapPid))
  }

  /**
   * @param body  body of the section, retained. Its bytes are compared, not its version_number: some encoders increment
   *   the version without a change, others change the map without a new version
   * @returns the map to carry when this section chose or changed it, else undefined
   */
  handlePmt(mapPid: number, programNumber: number, body: Buffer): ProgramMap | undefined {
    const candidate = this.#candidates.get(programNumber)
    if (candidate?.mapPid !== mapPid) return undefined
    // A repeated map shows that a whole cycle of maps has passed: programs still without a map do not send one.
    const isRepeated = candidate.body?.equals(body) === true
    if (isRepeated && this.#isSettled) return undefined
    const isOpen = !isRepeated && this.#staysOpenWith(candidate)
    const isPassive =
      this.#isSettled && this.#choice !== 'all' && this.#carried[0] !== programNumber
    const changesNothing = isOpen || isPassive
    if (!this.#pay(changesNothing ? body.length : this.#priceOf(body))) return undefined
    if (!isRepeated) {
      const map = decodePmt(programNumber, body)
      if (map === undefined) return undefined
      if (candidate.map === undefined) this.#knownMaps++
      candidate.body = body
      candidate.map = map
    }
    if (changesNothing) return undefined
    const maps = this.#select()
    if (maps.length === 0) return undefined
    this.#isSettled = true
    const numbers = maps.map((map) => map.programNumber)
    const isChanged = !isRepeated && numbers.includes(programNumber)
    if (!isChanged && numbers.join() === this.#carried.join()) return undefined
    this.#carried = numbers
    const joined = joinMaps(maps)
    this.#carriedStreams = joined.streams.length
    return joined
  }

  /**
   * @param price  price in packets of table credit, to which `PACKETS_PER_CHANGE` is added
   * @returns whether the credit covers the sum
   */
  #pay(price: number): boolean {
    if (this.#credit.pay(PACKETS_PER_CHANGE + price, this.#stats.packets)) return true
    this.#stats.unpaidTables++
    return false
  }

  #priceOf(body: Buffer): number {
    const joined = this.#choice === 'all' ? PACKETS_PER_STREAM * this.#carriedStreams : 0
    return PACKETS_PER_BYTE * body.length + this.#candidates.size + joined
  }

  /** Whether the choice stays open even with this candidate's map, because other maps are still to come. */
  #staysOpenWith(candidate: Candidate): boolean {
    const known = this.#knownMaps + (candidate.map === undefined ? 1 : 0)
    if (known >= this.#candidates.size) return false
    return !this.#carried.some((programNumber) => this.#candidates.has(programNumber))
  }

  #choose(programs: readonly ProgramAssociation[]): readonly ProgramAssociation[] {
    const choice = this.#choice
    if (typeof choice !== 'number') return programs.slice(0, MAX_PROGRAMS)
    return programs.filter(({ programNumber }) => programNumber === choice)
  }

  /** @returns maps of the programs to carry, as far as they are known */
  #select(): ProgramMap[] {
    const known = [...this.#candidates.values()].flatMap(({ map }) => map ?? [])
    const staying = this.#carried.filter((programNumber) => this.#candidates.has(programNumber))
    if (this.#choice === 'all') return known
    const chosen =
      staying.length > 0
        ? known.find(({ programNumber }) => programNumber === staying[0])
        : (known.find(hasVideo) ?? known[0])
    return chosen === undefined ? [] : [chosen]
  }
}

/**
 * Credit of one source for changes of tables. Its unit is the CPU time of demultiplexing one packet, about 0.2 µs. Each
 * transport packet earns 1, and each change of a PAT or PMT has a price, so a source whose tables change with every packet
 * costs little more CPU than one whose tables never change. A change that exceeds the credit is ignored until its section
 * is repeated.
 */
class TableCredit {
  #credit = MAX_CREDIT
  #packets = 0

  /**
   * @param price  price of the change in packets, at most `MAX_CREDIT`
   * @param packets  number of packets received so far
   * @returns whether the credit suffices; if so, the price is deducted
   */
  pay(price: number, packets: number): boolean {
    this.#credit = Math.min(MAX_CREDIT, this.#credit + packets - this.#packets)
    this.#packets = packets
    if (price > this.#credit) return false
    this.#credit -= price
    return true
  }
}

/** Joins the streams of all maps into one map, with the program number and PCR PID of the first map. */
function joinMaps(maps: readonly ProgramMap[]): ProgramMap {
  const streams = new Map<number, StreamEntry>()
  for (const map of maps) {
    if (streams.size >= MAX_STREAMS) break
    for (const entry of map.streams) if (!streams.has(entry.pid)) streams.set(entry.pid, entry)
  }
  return { ...maps[0]!, streams: [...streams.values()] }
}

function hasVideo(map: ProgramMap): boolean {
  return map.streams.some((entry) => describeTrack(entry).kind === 'video')
}
