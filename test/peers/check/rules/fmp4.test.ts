/** Rules on fragmented MP4, each broken once in a stream of ffmpeg's muxer. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Exchange, RequestRole } from '../../../../src/check/exchange.ts'
import { requireTool } from '../../support/tools.ts'
import { breaks, keepsAll, load, PLAYLIST_URL } from '../../../check/rules/fixture.ts'

const INPUT = [
  ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=15'],
  ...['-f', 'lavfi', '-i', 'sine=r=48000', '-t', '8'],
]
const AAC = ['-c:a', 'aac', '-b:a', '32k', '-ac', '1']
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30', ...AAC]
const H265 = [
  ...['-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hev1'],
  ...['-x265-params', 'log-level=error:keyint=30:open-gop=0', ...AAC],
]
const HLS = [
  ...['-f', 'hls', '-hls_time', '2', '-hls_list_size', '0', '-hls_segment_type', 'fmp4'],
  ...['-hls_flags', 'independent_segments', 'playlist.m3u8'],
]

/** Exchanges of a client that loads playlist, init segment and all segments that ffmpeg writes. */
function record(t: Test, ...runs: readonly string[][]): Exchange[] {
  const folder = t.testdir()
  for (const run of runs) execFileSync('ffmpeg', run, { cwd: folder })
  const media = (role: RequestRole, name: string): Exchange => {
    const url = new URL(name, PLAYLIST_URL).href
    const { reply, ...exchange } = load('', 10, { role, url, playlistUrl: PLAYLIST_URL })
    const headers = {
      ...reply!.headers,
      'content-type': 'video/mp4',
      'cache-control': 'max-age=60',
    }
    return {
      ...exchange,
      reply: { ...reply!, url, headers, body: readFileSync(join(folder, name)) },
    }
  }
  const text = readFileSync(join(folder, 'playlist.m3u8'), 'utf8')
  return [
    // The version that EXT-X-MAP needs; ffmpeg writes 7.
    load(text.replace('VERSION:7', 'VERSION:6'), 9),
    media('init', 'init.mp4'),
    ...readdirSync(folder)
      .filter((name) => name.endsWith('.m4s'))
      .toSorted()
      .map((name) => media('segment', name)),
  ]
}

/** Replaces the body of the reply of this index. */
function edit(exchanges: readonly Exchange[], at: number, change: (body: Buffer) => Buffer) {
  return exchanges.map((exchange, index) =>
    index === at
      ? {
          ...exchange,
          reply: { ...exchange.reply!, body: change(Buffer.from(exchange.reply!.body)) },
        }
      : exchange,
  )
}

/** Adds to the decode time of all fragments (tfdt of version 1), in seconds of 1/15360 and 1/48000. */
function delay(body: Buffer, sec: number): Buffer {
  const scales = [15_360, 48_000]
  for (let at = body.indexOf('tfdt'), track = 0; at >= 0; at = body.indexOf('tfdt', at + 4)) {
    const time = body.readBigUInt64BE(at + 8)
    body.writeBigUInt64BE(time + BigInt(sec * scales[track++ % 2]!), at + 8)
  }
  return body
}

t.test('fragmented MP4 of ffmpeg', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const good = record(t, [...INPUT, ...H264, ...HLS])
  keepsAll(t, good)
  const withoutMap = (body: Buffer) =>
    Buffer.from(
      body
        .toString()
        .replace(/#EXT-X-MAP.*\n/, '')
        .replace('VERSION:6', 'VERSION:3'),
    )
  breaks(t, 'MAP_MISSING', edit(good, 0, withoutMap))
  const addBox = (body: Buffer) => Buffer.concat([body, Buffer.from('\0\0\x01\0free')])
  breaks(t, 'BOXES_BROKEN', edit(good, 3, addBox))
  const later = [3, 4, 5].reduce((all, at) => edit(all, at, (body) => delay(body, 5)), good)
  breaks(t, 'TIMESTAMPS_BREAK', later)
})

t.test('fragmented MP4 of ffmpeg with parameter sets in the samples', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  await t.test('hev1', async (t) => {
    breaks(t, 'IN_BAND_ENTRY', record(t, [...INPUT, ...H265, ...HLS]))
  })
  await t.test('avc1, copied from a transport stream', async (t) => {
    const copy = ['-v', 'error', '-i', 'a.ts', '-c', 'copy', '-bsf:a', 'aac_adtstoasc', ...HLS]
    breaks(t, 'PARAMETER_SETS_IN_BAND', record(t, [...INPUT, ...H264, 'a.ts'], copy))
  })
})
