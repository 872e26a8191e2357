/**
 * Which program of a transport stream is carried: the first, in the order of the PAT, that has video; else the first.
 * Once chosen it stays for as long as the PAT lists it.
 *
 * @module
 */
import type { ProgramAssociation } from './pat.ts'
import { decodePmt, type ProgramMap } from './pmt.ts'
import { describeTrack } from './stream-type.ts'

interface Candidate {
  readonly mapPid: number
  /** Section body that `map` was decoded from. */
  body?: Buffer
  map?: ProgramMap
}

/** `handlePat` and `handlePmt` with every valid section of them. */
export class ProgramSelector {
  /** By program number, in the order of the PAT. */
  #candidates = new Map<number, Candidate>()
  #chosen: number | undefined

  /** @returns whether the list of programs changed */
  handlePat(programs: readonly ProgramAssociation[]): boolean {
    const before = this.#candidates
    this.#candidates = new Map(
      programs.map(({ programNumber, mapPid }) => {
        const known = before.get(programNumber)
        return [programNumber, known?.mapPid === mapPid ? known : { mapPid }]
      }),
    )
    if (this.#chosen !== undefined && !this.#candidates.has(this.#chosen)) this.#chosen = undefined
    return (
      this.#candidates.size !== before.size ||
      [...this.#candidates].some(([programNumber, it]) => before.get(programNumber) !== it)
    )
  }

  /** PIDs on which program maps are sent. */
  get mapPids(): Set<number> {
    return new Set([...this.#candidates.values()].map(({ mapPid }) => mapPid))
  }

  /**
   * @param body  of the section, kept; it counts as new only if it differs from the one before, for some encoders send
   *   new versions of the same and others new content under the same version
   * @returns the map of the program to carry, where this section made or changed it
   */
  handlePmt(mapPid: number, programNumber: number, body: Buffer): ProgramMap | undefined {
    const candidate = this.#candidates.get(programNumber)
    if (candidate?.mapPid !== mapPid) return undefined
    const repeated = candidate.body?.equals(body) === true
    if (!repeated) {
      const map = decodePmt(programNumber, body)
      if (map === undefined) return undefined
      candidate.body = body
      candidate.map = map
    }
    if (this.#chosen !== undefined) {
      return this.#chosen === programNumber && !repeated ? candidate.map : undefined
    }
    // A map that comes round again says that those not seen by now are not sent.
    const maps = [...this.#candidates.values()].map((it) => it.map)
    if (!repeated && maps.includes(undefined)) return undefined
    const known = maps.filter((map) => map !== undefined)
    const chosen = known.find(hasVideo) ?? known[0]
    this.#chosen = chosen?.programNumber
    return chosen
  }
}

function hasVideo(map: ProgramMap): boolean {
  return map.streams.some((entry) => describeTrack(entry).kind === 'video')
}
