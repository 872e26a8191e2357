/**
 * Finished parts and segments of a rendition: their plan, their end, and what was written.
 *
 * @module
 */
import type { PartEnd } from '../cut/part-plan.ts'
import { listedProperties, type SegmentEnd, type SegmentPlan } from '../cut/segment-plan.ts'
import { partUri, segmentUri } from '../file-names.ts'
import type { Part } from '../store/part.ts'
import { createSegment, type Segment } from '../store/segment.ts'
import { listTracks, type CarriedTracks } from './carried-tracks.ts'
import type { OpenSegment } from './open-segment.ts'
import type { RenditionWriterOptions } from './writer-output.ts'

type Identity = Pick<RenditionWriterOptions, 'name' | 'epoch'>

export function finishPart(
  { name, epoch }: Identity,
  plan: SegmentPlan,
  { serial, durationSec }: PartEnd,
  written: Pick<Part, 'chunks' | 'independent'>,
): Part {
  return {
    ...listedProperties(plan),
    ...written,
    rendition: name,
    serial,
    uri: partUri(epoch, name, serial),
    segmentUri: segmentUri(epoch, name, plan.mediaSequence),
    durationSec,
  }
}

interface WrittenSegment extends Pick<Segment, 'chunks' | 'parts'> {
  /** Undefined for a gap. */
  readonly open: OpenSegment | undefined
  /** Tracks that the rendition carries now. */
  readonly carried: CarriedTracks | undefined
}

export function finishSegment(
  { name, epoch }: Identity,
  plan: SegmentPlan,
  { durationSec, endTicks, endsTimeline }: SegmentEnd,
  { chunks, parts, open, ...written }: WrittenSegment,
): Segment {
  const carried = open?.carried ?? written.carried
  return createSegment({
    ...listedProperties(plan),
    epoch,
    rendition: name,
    uri: segmentUri(epoch, name, plan.mediaSequence),
    chunks,
    durationSec,
    startTicks: plan.startTicks,
    endTicks,
    independent: open?.isIndependent(plan) === true,
    startsWithKeyFrame: open?.startsWithKeyFrame === true,
    parts,
    endsTimeline,
    tracks: carried === undefined ? [] : listTracks(carried),
    videoFrames: carried?.video === undefined ? 0 : (open?.frames ?? 0),
  })
}
