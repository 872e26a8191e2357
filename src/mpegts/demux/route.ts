/**
 * Routes of packets by PID.
 *
 * @module
 */
import { Continuity } from '../continuity.ts'
import type { ElementaryStream } from './elementary-stream.ts'
import { NULL_PID, PAT_PID } from '../packet.ts'
import { MAX_PRIVATE_BYTES, SectionAssembler } from '../psi/section.ts'
import { isCarriedInPes, StreamType } from '../psi/stream-type.ts'

/** Destination of a PID: sections, PES packets of a stream, or neither when it carries only PCRs. */
export interface Route {
  readonly continuity: Continuity
  readonly sections?: SectionAssembler
  readonly stream?: ElementaryStream
}

/** PIDs to route, in addition to that of the PAT. */
interface ProgramPids {
  /** PIDs of all program maps to read. */
  readonly mapPids: Iterable<number>
  /** Elementary streams of the carried program, by PID. */
  readonly streams: ReadonlyMap<number, ElementaryStream>
  /** PCR PID of the carried program; `NULL_PID` without a program or PCR. */
  readonly pcrPid: number
}

/**
 * Creates the routes by PID. A PID listed both as a table and as a stream is a table.
 *
 * @param before  the previous routes; routes of remaining tables and streams are taken over with their state
 */
export function createRoutes(
  before: ReadonlyMap<number, Route>,
  program: ProgramPids,
): Map<number, Route> {
  const routes = new Map<number, Route>()
  const addSections = (pid: number, maxBytes?: number) => {
    const known = before.get(pid)
    const continues = known?.sections !== undefined
    routes.set(
      pid,
      continues
        ? known
        : { continuity: new Continuity(), sections: new SectionAssembler(maxBytes) },
    )
  }
  for (const pid of [PAT_PID, ...program.mapPids]) addSections(pid)
  for (const [pid, stream] of program.streams) {
    const { streamType } = stream.track
    if (routes.has(pid)) continue
    if (streamType === StreamType.SCTE_35) addSections(pid, MAX_PRIVATE_BYTES)
    if (!isCarriedInPes(streamType)) continue
    const known = before.get(pid)
    const continues = known?.stream === stream
    routes.set(pid, continues ? known : { continuity: new Continuity(), stream })
  }
  const { pcrPid } = program
  if (pcrPid !== NULL_PID && !routes.has(pcrPid)) {
    routes.set(pcrPid, { continuity: new Continuity() })
  }
  return routes
}
