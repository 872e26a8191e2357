/**
 * Which program of a transport stream is carried: that of a number; or the first, in the order of the PAT, that has
 * video, else the first; or all of them as if they were one. What is carried stays for as long as the PAT lists it.
 *
 * @module
 */
import type { DemuxerStats } from './demuxer-stats.ts'
import { ProgramList, type ProgramAssociation } from '../psi/pat.ts'
import { decodePmt, type ProgramMap, type StreamEntry } from '../psi/pmt.ts'
import type { ProgramChoice } from '../program-choice.ts'
import type { SectionFields } from '../psi/section.ts'
import { describeTrack } from '../psi/describe-track.ts'
import { TableCredit } from './table-credit.ts'

/** Programs that are looked into; a line that holds as many has not been built. */
const MAX_PROGRAMS = 1024

/** No further program joins those that have as many together, for each change of one goes through all of them. */
const MAX_STREAMS = 256

/** Price of any change. */
const PACKETS_PER_CHANGE = 16

/** Price of a program map that changes what is carried, for each of its bytes and each stream of other programs. */
const PACKETS_PER_BYTE = 4
const PACKETS_PER_STREAM = 8

interface Candidate {
  readonly mapPid: number
  /** Section body that `map` was decoded from. */
  body?: Buffer
  map?: ProgramMap
}

/** `handlePat` and `handlePmt` with every valid section of them. */
export class ProgramSelector {
  readonly #choice: ProgramChoice
  readonly #stats: DemuxerStats
  readonly #list = new ProgramList()
  readonly #credit = new TableCredit()
  /** By program number, in the order of the PAT. */
  #candidates = new Map<number, Candidate>()
  #listed: readonly number[] = []
  /** Numbers of what is carried. */
  #carried: readonly number[] = []
  #carriedStreams = 0
  /** Candidates whose map was seen. */
  #knownMaps = 0
  /** The PAT is as it was when that was chosen. */
  #isSettled = false

  /** @param stats  in which tables that are passed over are counted; its packets pay for the others */
  constructor(choice: ProgramChoice, stats: DemuxerStats) {
    this.#choice = choice
    this.#stats = stats
  }

  /** Numbers of all programs in the order of the PAT; empty before the first. */
  get listed(): readonly number[] {
    return this.#listed
  }

  /** @returns whether the PIDs of program maps may have changed */
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
      [...this.#candidates].every(([programNumber, it]) => before.get(programNumber) === it)
    if (isSame) return false
    this.#isSettled = false
    this.#knownMaps = [...this.#candidates.values()].filter(({ map }) => map !== undefined).length
    return true
  }

  /** PIDs on which program maps are sent. */
  get mapPids(): Set<number> {
    return new Set([...this.#candidates.values()].map(({ mapPid }) => mapPid))
  }

  /**
   * @param body  of the section, kept; it counts as new only if it differs from the one before, for some encoders send
   *   new versions of the same and others new content under the same version
   * @returns the map of what to carry, where this section made or changed it
   */
  handlePmt(mapPid: number, programNumber: number, body: Buffer): ProgramMap | undefined {
    const candidate = this.#candidates.get(programNumber)
    if (candidate?.mapPid !== mapPid) return undefined
    // One that comes round again says that those not seen by now are not sent.
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

  /** @param price  beside that of any change */
  #pay(price: number): boolean {
    if (this.#credit.pay(PACKETS_PER_CHANGE + price, this.#stats.packets)) return true
    this.#stats.unpaidTables++
    return false
  }

  #priceOf(body: Buffer): number {
    const joined = this.#choice === 'all' ? PACKETS_PER_STREAM * this.#carriedStreams : 0
    return PACKETS_PER_BYTE * body.length + this.#candidates.size + joined
  }

  /** Which program to carry is open, and stays so when this one's map is known: others have yet to be seen. */
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

  /** @returns the maps of what to carry by now */
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

/** Number and clock of the first, the streams of all. */
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
