/** Rules on fragmented MP4, each broken once in a stream of ffmpeg's muxer. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Exchange, Role } from '../../../../src/check/exchange.ts'
import { requireTool } from '../../support/tools.ts'
import { breaks, keepsAll, load, PLAYLIST_URL } from '../../../check/rules/fixture.ts'

const ENCODE = [
  ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=15'],
  ...['-f', 'lavfi', '-i', 'sine=r=48000', '-t', '8', '-c:v', 'libx264', '-preset', 'ultrafast'],
  ...['-g', '30', '-c:a', 'aac', '-b:a', '32k', '-ac', '1', '-f', 'hls', '-hls_time', '2'],
  ...['-hls_list_size', '0', '-hls_segment_type', 'fmp4', '-hls_flags', 'independent_segments'],
]

/** Exchanges of a client that loads playlist, init segment and all segments. */
function record(t: Test): Exchange[] {
  const folder = t.testdir()
  execFileSync('ffmpeg', [...ENCODE, join(folder, 'playlist.m3u8')], { cwd: folder })
  const media = (role: Role, name: string): Exchange => {
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
  const good = record(t)
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
