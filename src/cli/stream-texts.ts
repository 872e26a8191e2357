/**
 * Answers of the API for readers at a terminal.
 *
 * @module
 */
import type { ResponseData } from '../client/index.ts'

type Started = ResponseData<'start-stream'>
type StreamRecord = ResponseData<'status'>

/** Latency for a line that nobody has measured, in the unit of ffmpeg and OBS. */
const LATENCY_US = 500_000

/**
 * What encoder and players of a stream need.
 *
 * @param needsToken  whether viewers need a playback token, which the URLs do not have
 */
export function formatStarted(started: Started, needsToken: boolean): string {
  const { stream_id, status, expires_at, srt_url } = started
  const encoder = [
    ['SRT URL', srt_url],
    ['OBS Server', srt_url.replace(/streamid=[^&]*/, `latency=${LATENCY_US}`)],
    ['OBS Stream Key', started.stream_key],
    ['ffmpeg', ffmpegLine(srt_url)],
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
    ...tokenRows(stream_id, needsToken),
  ]
  return [
    `${stream_id} is ${status}. Its stream key is good until ${expires_at}.`,
    columns(present(encoder)),
    columns(present(viewers)),
  ].join('\n\n')
}

function ffmpegLine(srtUrl: string): string {
  const url = `${srtUrl}&latency=${LATENCY_US}&linger=2`
  return `ffmpeg -re -i INPUT -c copy -f mpegts -pes_payload_size 0 '${url}'`
}

/** How viewers get in, where they need a playback token. */
function tokenRows(streamId: string, needsToken: boolean): string[][] {
  const command = `millrace sign-playback ${streamId}`
  return needsToken ? [['Token', `viewers need the URL that \`${command}\` prints`]] : []
}

/** State of a stream, and what is wrong with it. */
export function formatRecord(record: StreamRecord): string {
  const { status, live_since, interruption, publisher, tracks, warnings, stale } = record
  return columns(
    present([
      [record.stream_id, live_since === null ? status : `${status}, live since ${live_since}`],
      ['Stale', stale && 'the node of the stream does not answer: only its state is known'],
      ['Interrupted', interruption && `${interruption.since} (${interruption.reason})`],
      ['Stops', record.stops_at],
      ['Banned until', record.banned_until],
      ['On air', record.on_air ?? undefined],
      ['Encoder', publisher ? formatPublisher(publisher) : undefined],
      ...tracks.map((track) => ['Track', formatTrack(track)]),
      ['Viewers', String(record.viewers)],
      ['Players', record.master_url],
      ['Recorders', record.playlist_url],
      ...tokenRows(record.stream_id, record.playback_token),
      ...warnings.map(({ code, message }) => ['Warning', `${code}: ${message}`]),
    ]),
  )
}

/** A line for each stream. */
export function formatStreams(records: readonly StreamRecord[]): string {
  if (records.length === 0) return 'no streams: `millrace start ID` starts one'
  return columns([
    ['STREAM', 'STATE', 'BITRATE', 'VIEWERS', 'WARNINGS'],
    ...records.map(({ stream_id, status, publisher, viewers, warnings, stale }) => [
      stream_id,
      stale ? `${status} (stale)` : status,
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
