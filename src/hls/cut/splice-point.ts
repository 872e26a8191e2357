/**
 * Splice points: starts and ends of breaks, and other SCTE-35 commands for players (RFC 8216bis 4.4.5.1.1).
 *
 * @module
 */
import type { Segmentation } from '../../mpegts/psi/segmentation-descriptor.ts'
import type { SpliceInfo, SpliceInsert } from '../../mpegts/psi/splice-info.ts'

/**
 * - `out`, `in`: start and end of a break in the program.
 * - `command`: any other event with a time.
 * - `cancel`: withdraws the announced points of an event, whose key is this one or begins with it.
 */
export interface SplicePoint {
  readonly kind: 'out' | 'in' | 'command' | 'cancel'
  /** Shared by points that belong together: `out` and `in`, or an announcement and its correction. */
  readonly key: string
  /** Splice time, 90 kHz, unwrapped; undefined for an immediate splice. */
  readonly ptsTicks?: number
  /** Whole splice information section. */
  readonly section: Buffer
  /** Planned duration of the break, 90 kHz. */
  readonly plannedTicks?: number
  /** Whether the break ends after `plannedTicks` without an `in` (auto_return, ANSI/SCTE 35 9.8.2). */
  readonly autoReturn?: boolean
}

/**
 * segmentation_type_id of the start of a break (0x22), and of an advertisement, a placement opportunity and an
 * advertisement block of provider and distributor (ANSI/SCTE 35 10.3.3.1). The end has the id of the start plus 1.
 */
const OUT_TYPES: ReadonlySet<number> = new Set([0x22, 0x30, 0x32, 0x34, 0x36, 0x44, 0x46])

/** @returns points of a splice information section; none unless it has a splice_insert or time_signal */
export function findSplicePoints(splice: SpliceInfo): SplicePoint[] {
  const { section, ptsTicks, command } = splice
  const place = { section, ...(ptsTicks !== undefined && { ptsTicks }) }
  if (command.type === 'splice-insert') return [{ ...place, ...describeInsert(command) }]
  if (command.type !== 'time-signal') return []
  if (command.segmentations.length > 0) {
    return command.segmentations.map((each) => ({ ...place, ...describeSegmentation(each) }))
  }
  return [{ ...place, kind: 'command', key: `signal-${ptsTicks ?? 'now'}` }]
}

type Description = Omit<SplicePoint, 'section' | 'ptsTicks'>

function describeInsert(insert: SpliceInsert): Description {
  const key = `splice-${insert.eventId}`
  if (insert.canceled) return { kind: 'cancel', key }
  if (!insert.outOfNetwork) return { kind: 'in', key }
  if (insert.break === undefined) return { kind: 'out', key }
  const { durationTicks, autoReturn } = insert.break
  return { kind: 'out', key, plannedTicks: durationTicks, autoReturn }
}

function describeSegmentation(segmentation: Segmentation): Description {
  const { eventId, canceled, typeId, durationTicks } = segmentation
  const event = `segmentation-${eventId}`
  // A cancellation does not carry the type.
  if (canceled) return { kind: 'cancel', key: event }
  if (OUT_TYPES.has(typeId - 1)) return { kind: 'in', key: `${event}-${typeId - 1}` }
  const kind = OUT_TYPES.has(typeId) ? 'out' : 'command'
  const planned = durationTicks !== undefined && { plannedTicks: durationTicks }
  return { kind, key: `${event}-${typeId}`, ...planned }
}
