/**
 * A clip as a stream that is over, packaged at once.
 *
 * @module
 */
import type { FileStore } from '../../src/hls/store/file-store.ts'
import { Packager } from '../../src/hls/packager.ts'
import { LivePresentation } from '../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { demux } from '../mpegts/demux.ts'

/** Packages a clip; `onSegment` is called after each segment. */
export function packageClip(
  source: Buffer,
  onSegment?: (files: FileStore, segment: Segment) => void,
) {
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments: 3 })
  const packager = new Packager({
    epoch: 'e',
    segmentSec: 2,
    maxSegmentSec: 10,
    slabs: cache.slabs,
  })
  const segments: Segment[] = []
  const take = (outputs: ReturnType<Packager['end']>) => {
    for (const output of outputs) {
      if (output.type === 'target') presentation.setTarget(output.targetSec)
      if (output.type !== 'segment') continue
      segments.push(output.segment)
      presentation.append(output.segment, segments.length * 2000)
      onSegment?.(presentation.files, output.segment)
    }
  }
  for (const output of demux(source)) take(packager.push(output, 1e12))
  take(packager.end())
  return { files: presentation.files, segments, cache, presentation }
}
