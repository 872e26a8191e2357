/**
 * An init segment of H.264 and a segment of its samples.
 *
 * @module
 */
import { readFixture } from '../../mpegts/demux.ts'
import { fragment, readVideo, unitsOfKind } from '../../mp4/fragmented-track.ts'

const { init, fragments } = fragment(
  readVideo(unitsOfKind(readFixture('two-languages'), 'video').slice(0, 20), 'h264'),
)

export const VIDEO_INIT = init
export const SEGMENT_OF_VIDEO = Buffer.concat(fragments.flatMap(({ chunks }) => chunks))
