/**
 * Which program of a transport stream is carried: that of a number; or the first, in the order of the PAT, that has
 * video, else the first; or all of them as if they were one. What is carried stays for as long as the PAT lists it.
 *
 * @module
 */
import { ProgramList, type ProgramAssociation } from './pat.ts'
import { decodePmt, type ProgramMap, type StreamEntry } from './pmt.ts'
import type { ProgramChoice } from './program-choice.ts'
import type { SectionFields } from './section.ts'
import { describeTrack } from './stream-type.ts'

/** Programs that are looked into; a line that holds as many has not been built. */
const MAX_PROGRAMS = 1024

/** No further program joins those that have as many together, for each change of one goes through all of them. */
const MAX_STREAMS = 256

interface Candidate {
  readonly mapPid: number
  /** Section body that `map` was decoded from. */
  body?: Buffer
  map?: ProgramMap
}

/** `handlePat` and `handlePmt` with every valid section of them. */
export class ProgramSelector {
  readonly #choice: ProgramChoice
  readonly #list = new ProgramList()
  /** By program number, in the order of the PAT. */
  #candidates = new Map<number, Candidate>()
  #listed: readonly number[] = []
  /** Numbers of what is carried. */
  #carried: readonly number[] = []
  /** The PAT is as it was when that was chosen. */
  #isSettled = false

  constructor(choice: ProgramChoice) {
    this.#choice = choice
  }

  /** Numbers of all programs in the order of the PAT; empty before the first. */
  get listed(): readonly number[] {
    return this.#listed
  }

  /** @returns whether the PIDs of program maps may have changed */
  handlePat(section: SectionFields): boolean {
    const programs = this.#list.push(section)
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
    if (!isSame) this.#isSettled = false
    return !isSame
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
    const isRepeated = candidate.body?.equals(body) === true
    if (isRepeated && this.#isSettled) return undefined
    if (!isRepeated) {
      const map = decodePmt(programNumber, body)
      if (map === undefined) return undefined
      candidate.body = body
      candidate.map = map
    }
    const maps = this.#select(isRepeated)
    if (maps.length === 0) return undefined
    this.#isSettled = true
    const numbers = maps.map((map) => map.programNumber)
    const isChanged = !isRepeated && numbers.includes(programNumber)
    if (!isChanged && numbers.join() === this.#carried.join()) return undefined
    this.#carried = numbers
    return joinMaps(maps)
  }

  #choose(programs: readonly ProgramAssociation[]): readonly ProgramAssociation[] {
    const choice = this.#choice
    if (typeof choice !== 'number') return programs.slice(0, MAX_PROGRAMS)
    return programs.filter(({ programNumber }) => programNumber === choice)
  }

  /** @returns the maps of what to carry by now; none as long as that is open */
  #select(isRepeated: boolean): ProgramMap[] {
    const known = [...this.#candidates.values()].flatMap(({ map }) => map ?? [])
    const staying = this.#carried.filter((programNumber) => this.#candidates.has(programNumber))
    // A map that comes round again says that those not seen by now are not sent.
    const isOpen = staying.length === 0 && !isRepeated && known.length < this.#candidates.size
    if (isOpen) return []
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
