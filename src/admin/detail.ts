/**
 * What the page of a stream shows besides its row: tracks, latency, URLs, and what happened to it.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import type { StreamControl } from '../api/control.ts'
import type { KeyReport, StreamRecord, TrackReport } from '../api/records.ts'
import type { PlaybackSource } from '../playback/playback-source.ts'
import type { KeyFigures, PlayQrCodes, StreamDetail, TrackFigures } from '../web/dashboard/wire.ts'
import type { Journal } from './journal.ts'
import { findStream } from './previews.ts'
import { qrCodeOf } from './qr-code.ts'

export interface DetailOptions {
  readonly control: StreamControl
  /** Streams of this process. */
  readonly source: PlaybackSource
  /** Streams of all nodes. */
  readonly allStreams: PlaybackSource
  readonly journal: Journal
}

interface StreamRoute {
  Params: { stream_id: string }
}

/** Fastify plugin: `GET /streams/{id}/detail`, and `GET /streams/{id}/qr-code` of its play URLs. */
export const detail: FastifyPluginAsync<DetailOptions> = async (app, options) => {
  const { control, source, allStreams, journal } = options
  const readRecord = async (id: string) => {
    findStream(allStreams, id)
    return control.status(id)
  }

  app.get<StreamRoute>('/streams/:stream_id/detail', async ({ params }) => {
    const { stream_id: id } = params
    const isElsewhere = source.findStream(id) === undefined
    const data: StreamDetail = {
      ...describe(await readRecord(id)),
      ...journal.read(id),
      ...(isElsewhere && { isElsewhere }),
    }
    return { success: true, data }
  })

  app.get<StreamRoute>('/streams/:stream_id/qr-code', async ({ params }) => {
    const { masterUrl, playlistUrl } = await readRecord(params.stream_id)
    const [master, playlist] = [qrCodeOf(masterUrl), qrCodeOf(playlistUrl)]
    const data: PlayQrCodes = { ...(master && { master }), ...(playlist && { playlist }) }
    return { success: true, data }
  })
}

function describe(record: StreamRecord): Omit<StreamDetail, 'events' | 'webhooks'> {
  const { playlistUrl, masterUrl, live, latency, tracks, interruption, stopsAt, archive } = record
  const { keys = [] } = record
  return {
    playlistUrl,
    masterUrl,
    tracks: tracks.map(figuresOf),
    ...(live && latency && { latency }),
    ...(interruption && {
      interruption: { sinceMs: interruption.since.getTime(), reason: interruption.reason },
    }),
    ...(stopsAt && { stopsAtMs: stopsAt.getTime() }),
    ...(archive && { archive }),
    keys: keys.map(keyOf),
  }
}

function keyOf({ keyId: id, source, issuedAt, expiresAt, lastUsedAt }: KeyReport): KeyFigures {
  return {
    id,
    source,
    ...(issuedAt && { issuedMs: issuedAt.getTime() }),
    expiresMs: expiresAt.getTime(),
    ...(lastUsedAt && { usedMs: lastUsedAt.getTime() }),
  }
}

function figuresOf(track: TrackReport): TrackFigures {
  const { bitrateBps, gopSec } = track
  return {
    text: trackInWords(track),
    ...(bitrateBps !== undefined && { bitrateBps }),
    ...(gopSec !== undefined && { gopSec }),
  }
}

/** For example `h264 1280×720 30 fps` or `aac 48 kHz eng`. */
function trackInWords(track: TrackReport): string {
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
