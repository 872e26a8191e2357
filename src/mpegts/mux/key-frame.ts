/**
 * A transport stream of one frame, from the start of a segment: PAT and PMT with the video alone, then the packets of
 * its first video frame. The packets are not copied.
 *
 * @module
 */
import { hasPcr, isUnitStart, NULL_PID, PACKET_BYTES, payloadOffset, readPid } from '../packet.ts'
import type { Track } from '../track.ts'
import { encodePsi } from './program-tables.ts'

/** Maximum distance of the frame's end from the start of the segment: an 8K key frame is smaller. */
const MAX_BYTES = 4 * 1024 * 1024

/** Maximum number of views into the segment: each is a write of an HTTP reply. */
const MAX_VIEWS = 256

const PROGRAM_NUMBER = 1

/** Offset of the flags of PTS and DTS in a PES packet (2.4.3.6). */
const PTS_FLAGS_AT = 7

/**
 * @param segment  whole transport packets, in which those of two PES packets never interleave
 * @param video  the video track
 * @returns PAT and PMT in memory of their own, then views into `segment`; undefined if the frame does not end within
 *   4 MiB or is in too many pieces
 */
export function firstFrame(segment: readonly Buffer[], video: Track): Buffer[] | undefined {
  const views: Buffer[] = []
  let sizeBytes = 0
  for (const chunk of segment) {
    let start: number | undefined
    for (let at = 0; at < chunk.length; at += PACKET_BYTES) {
      if ((sizeBytes += PACKET_BYTES) > MAX_BYTES || views.length === MAX_VIEWS) return undefined
      const isVideo = readPid(chunk, at) === video.pid
      const hasBegun = views.length > 0 || start !== undefined
      const isNext = isVideo && hasBegun && startsFrame(chunk, at)
      if (isVideo && !isNext && (hasBegun || isUnitStart(chunk, at))) start ??= at
      else if (start !== undefined) {
        views.push(chunk.subarray(start, at))
        start = undefined
      }
      if (isNext) return withTables(views, video)
    }
    if (start !== undefined) views.push(chunk.subarray(start))
  }
  return views.length === 0 ? undefined : withTables(views, video)
}

/** Whether a PES packet with a PTS begins here: one without continues the frame (2.4.3.7). */
function startsFrame(bytes: Buffer, at: number): boolean {
  if (!isUnitStart(bytes, at)) return false
  const flagsAt = (payloadOffset(bytes, at) ?? at) + PTS_FLAGS_AT
  return flagsAt >= at + PACKET_BYTES || (bytes[flagsAt]! & 0x80) !== 0
}

function withTables(views: readonly Buffer[], video: Track): Buffer[] {
  const pcrPid = hasPcr(views[0]!, 0) ? video.pid : NULL_PID
  return [encodePsi({ programNumber: PROGRAM_NUMBER, pcrPid, tracks: [video] }, 0), ...views]
}
