/**
 * Answers of the API for readers at a terminal.
 *
 * @module
 */
import type { ResponseData } from '../client/index.ts'

type Started = ResponseData<'start-stream'>
type StreamRecord = ResponseData<'status'>

/** Latency for a line that nobody has measured, in the unit of OBS. */
const OBS_LATENCY_US = 500_000

/** What encoder and players of a stream need. */
export function formatStarted(started: Started): string {
  const { stream_id, status, expires_at, srt_url } = started
  const encoder = [
    ['SRT URL', srt_url],
    ['OBS Server', srt_url.replace(/streamid=[^&]*/, `latency=${OBS_LATENCY_US}`)],
    ['OBS Stream Key', started.stream_key],
    ['ffmpeg', `ffmpeg -re -i INPUT -c copy -f mpegts '${srt_url}'`],
    ['Short key', started.short_stream_key],
    ['Own port', started.publish_url],
    ['Backup SRT URL', started.backup_srt_url],
    ['Backup key', started.backup_stream_key],
  ]
  const viewers = [
    ['Watch', started.watch_url],
    ['Players', started.master_url],
    ['Recorders', started.playlist_url],
    ['Play over SRT', started.play_url],
  ]
  return [
    `${stream_id} is ${status}. Its stream key is good until ${expires_at}.`,
    columns(present(encoder)),
    columns(present(viewers)),
  ].join('\n\n')
}

/** State of a stream, and what is wrong with it. */
export function formatRecord(record: StreamRecord): string {
  const { status, live_since, interruption, publisher, tracks, warnings } = record
  return columns(
    present([
      [record.stream_id, live_since === null ? status : `${status}, live since ${live_since}`],
      ['Interrupted', interruption && `${interruption.since} (${interruption.reason})`],
      ['Stops', record.stops_at],
      ['Encoder', publisher ? formatPublisher(publisher) : undefined],
      ...tracks.map((track) => ['Track', formatTrack(track)]),
      ['Viewers', String(record.viewers)],
      ['Players', record.master_url],
      ['Recorders', record.playlist_url],
      ...warnings.map(({ code, message }) => ['Warning', `${code}: ${message}`]),
    ]),
  )
}

/** A line for each stream. */
export function formatStreams(records: readonly StreamRecord[]): string {
  if (records.length === 0) return 'no streams: `millrace start ID` starts one'
  return columns([
    ['STREAM', 'STATE', 'BITRATE', 'VIEWERS', 'WARNINGS'],
    ...records.map(({ stream_id, status, publisher, viewers, warnings }) => [
      stream_id,
      status,
      publisher ? megabits(publisher.bitrate_bps) : '-',
      String(viewers),
      warnings.map(({ code }) => code).join(' ') || '-',
    ]),
  ])
}

function formatPublisher(publisher: NonNullable<StreamRecord['publisher']>): string {
  const { remote, bitrate_bps, rtt_ms, packets_lost, packets_dropped } = publisher
  return [
    remote,
    megabits(bitrate_bps),
    ...(rtt_ms === undefined ? [] : [`RTT ${Math.round(rtt_ms)} ms`]),
    ...(packets_lost === undefined ? [] : [`${packets_lost} packets lost`]),
    ...(packets_dropped === undefined ? [] : [`${packets_dropped} dropped`]),
  ].join(', ')
}

function formatTrack(track: StreamRecord['tracks'][number]): string {
  const { kind, codec, width, height, frame_rate, sample_rate, channels, bitrate_bps } = track
  return [
    `${kind} ${codec}`,
    ...(width === undefined ? [] : [`${width}x${height}`]),
    ...(frame_rate === undefined ? [] : [`${Math.round(frame_rate * 100) / 100} fps`]),
    ...(sample_rate === undefined ? [] : [`${sample_rate} Hz`]),
    ...(channels === undefined ? [] : [`${channels} channels`]),
    ...(bitrate_bps === undefined ? [] : [megabits(bitrate_bps)]),
  ].join(', ')
}

function megabits(bps: number): string {
  return `${(bps / 1e6).toFixed(1)} Mbit/s`
}

/** Rows whose value is there. */
function present(rows: readonly (readonly (string | undefined)[])[]): string[][] {
  return rows.filter((row): row is string[] => !row.includes(undefined))
}

/** Lines with the cells of a column below each other. */
function columns(rows: readonly (readonly string[])[]): string {
  const [first = []] = rows
  const widths = first.map((_, index) => Math.max(...rows.map((row) => row[index]!.length)))
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
