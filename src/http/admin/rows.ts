/**
 * Rows of the dashboard's list, from records of streams: what an operator sees at a glance, in a tenth of the bytes.
 *
 * @module
 */
import type { PublisherReport, TrackReport } from '../../contract/report.ts'
import type { StreamPage } from '../../contract/streams.ts'
import type { EncoderFigures, StreamRow } from './wire.ts'

export function rowOf(record: StreamPage['streams'][number]): StreamRow {
  const { streamId, status, live, liveSince, publisher, viewers } = record
  const { tracks, warnings, node, edges, playbackToken } = record
  return {
    id: streamId,
    status,
    live,
    ...(liveSince && { liveSinceMs: liveSince.getTime() }),
    ...(publisher && { encoder: encoderOf(publisher) }),
    viewers,
    tracks: tracks.map(describe),
    warnings: warnings.map(({ code, message }) => ({ code, message })),
    ...(node !== undefined && { node }),
    ...(edges && { edges: edges.length, edgeLagMs: Math.max(...edges.map(({ lagMs }) => lagMs)) }),
    ...(playbackToken && { isProtected: true }),
  }
}

function encoderOf(publisher: PublisherReport): EncoderFigures {
  const { remote, bitrateBps, peerVersion, rttMs, latencyMs } = publisher
  const { packetsReceived, packetsLost, packetsDropped } = publisher
  return {
    remote,
    bitrateBps: Math.round(bitrateBps),
    version: peerVersion,
    rttMs: rttMs === undefined ? undefined : Math.round(rttMs * 10) / 10,
    latencyMs,
    packetsReceived,
    packetsLost,
    packetsDropped,
  }
}

/** For example `h264 1280×720 30 fps` or `aac 48 kHz eng`. */
function describe(track: TrackReport): string {
  const { codec, width, height, frameRate, sampleRate, language } = track
  const words = [
    codec,
    width && height && `${width}×${height}`,
    frameRate && `${Math.round(frameRate * 100) / 100} fps`,
    sampleRate && `${sampleRate / 1000} kHz`,
    language === 'und' ? undefined : language,
  ]
  return words.filter(Boolean).join(' ')
}
