/**
 * Where the packets of each PID go.
 *
 * @module
 */
import { Continuity } from './continuity.ts'
import type { ElementaryStream } from './elementary-stream.ts'
import { NULL_PID, PAT_PID } from '../packet.ts'
import { MAX_PRIVATE_BYTES, SectionAssembler } from '../psi/section.ts'
import { isCarriedInPes, StreamType } from '../psi/stream-type.ts'

/** Into sections, into PES packets of a stream, or nowhere: a PID that carries nothing but a PCR. */
export interface Route {
  readonly continuity: Continuity
  readonly sections?: SectionAssembler
  readonly stream?: ElementaryStream
}

/** What a transport stream is known to carry. */
export interface Carried {
  /** PIDs of program maps. */
  readonly mapPids: Iterable<number>
  /** Streams of the program by PID. */
  readonly streams: ReadonlyMap<number, ElementaryStream>
  /** `NULL_PID` where there is none. */
  readonly pcrPid: number
}

/**
 * Routes of all PIDs of interest. Tables come before streams: a PID that claims to be both is a table.
 *
 * @param before  the routes so far: what goes on keeps its state
 */
export function layRoutes(
  before: ReadonlyMap<number, Route>,
  carried: Carried,
): Map<number, Route> {
  const routes = new Map<number, Route>()
  const laySections = (pid: number, maxBytes?: number) => {
    const known = before.get(pid)
    const goesOn = known?.sections !== undefined
    routes.set(
      pid,
      goesOn ? known : { continuity: new Continuity(), sections: new SectionAssembler(maxBytes) },
    )
  }
  for (const pid of [PAT_PID, ...carried.mapPids]) laySections(pid)
  for (const [pid, stream] of carried.streams) {
    const { streamType } = stream.track
    if (routes.has(pid)) continue
    if (streamType === StreamType.SCTE_35) laySections(pid, MAX_PRIVATE_BYTES)
    if (!isCarriedInPes(streamType)) continue
    const known = before.get(pid)
    const goesOn = known?.stream === stream
    routes.set(pid, goesOn ? known : { continuity: new Continuity(), stream })
  }
  const { pcrPid } = carried
  if (pcrPid !== NULL_PID && !routes.has(pcrPid)) {
    routes.set(pcrPid, { continuity: new Continuity() })
  }
  return routes
}
