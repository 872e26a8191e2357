/**
 * Beginning of a segment in all renditions.
 *
 * @module
 */
import { listedProperties, type ListedProperties, type SegmentPlan } from '../cut/segment-plan.ts'
import { segmentUri, type RenditionName } from '../file-names.ts'

/** Segment that begins, with its URI in each rendition, the main one first. */
export interface SegmentStart extends ListedProperties {
  readonly uris: ReadonlyMap<RenditionName, string>
}

export function describeStart(
  plan: SegmentPlan,
  epoch: string,
  renditions: readonly RenditionName[],
): SegmentStart {
  const uris = renditions.map(
    (name) => [name, segmentUri(epoch, name, plan.mediaSequence)] as const,
  )
  return { ...listedProperties(plan), uris: new Map(uris) }
}
