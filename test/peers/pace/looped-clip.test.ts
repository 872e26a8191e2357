/** Clips of ffmpeg in a loop, judged by ffmpeg, ffprobe and `millrace check`. */
import t from 'tap'
import { isUnitStart, PACKET_BYTES } from '../../../src/mpegts/packet.ts'
import { readPesTimes } from '../../../src/pace/packet-times.ts'
import { play, remux } from '../../pace/loop-clips.ts'
import { AAC, ClipFolder, gop, lavfi, TEST_PATTERN, TONE, X264, X265 } from '../media/clip.ts'
import { judgeLoads } from '../media/judge.ts'
import { publish } from '../media/publish.ts'
import { decodeErrors } from '../support/media.ts'
import { requireTool } from '../support/tools.ts'

const B_FRAMES = ['-c:v', 'libx264', '-preset', 'veryfast', '-threads', '1', ...gop(60), '-bf', '3']
const CD_TONE = lavfi('sine=f=440:r=44100')

const CASES = {
  'H.264 and AAC': [...TEST_PATTERN, ...TONE, ...X264, ...AAC],
  'H.264 with B-frames and AAC of 44.1 kHz': [...TEST_PATTERN, ...CD_TONE, ...B_FRAMES, ...AAC],
  'H.265 with B-frames and AAC': [
    ...[...TEST_PATTERN, ...TONE, ...X265, 'keyint=60:min-keyint=60:open-gop=0:bframes=3', ...AAC],
  ],
  'H.264 and MP2': [...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'mp2', '-b:a', '128k'],
}

/** Neither is a multiple of an audio frame. */
const CLIP_SEC = 4.1
const LOOP_SEC = 4 * CLIP_SEC

const folder = new ClipFolder()
t.teardown(() => folder.remove())

for (const [name, args] of Object.entries(CASES)) {
  t.test(`${name} in a loop`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const { bytes } = await folder.encode(args, CLIP_SEC)
    const loop = withoutCutFrame(Buffer.concat(play(remux(bytes), LOOP_SEC)))
    const file = await folder.write(loop)
    t.equal(await decodeErrors(file), '', 'ffmpeg decodes all of it')
    for (const { kind, frames } of (await folder.readFrames(file)).values()) {
      const times = frames.map(([pts, dts]) => ({ pts: pts!, dts: dts! }))
      t.ok(times.length > LOOP_SEC * 28, `${kind}: ${times.length} frames`)
      for (const key of ['pts', 'dts'] as const) {
        const sorted = times.map((each) => each[key]).toSorted((a, b) => a - b)
        const steps = sorted.slice(1).map((ticks, index) => ticks - sorted[index]!)
        // The last frames may be presented after B-frames that are cut.
        const inner = steps.slice(0, -4)
        t.ok(Math.max(...inner) - Math.min(...inner) <= 2, `${kind}: ${key}`, {
          steps: [...new Set(inner)],
        })
      }
      const order = times.map(({ dts }) => dts)
      t.same(
        order,
        order.toSorted((a, b) => a - b),
        `${kind}: DTS in order`,
      )
    }
    const { ts, cmaf, warnings } = publish([{ bytes: loop, sec: LOOP_SEC }])
    t.same(warnings, name.includes('MP2') ? ['TRACKS_NOT_IN_CMAF'] : [])
    for (const presentation of [ts, cmaf]) {
      judgeLoads(t, [], presentation, true)
      for (const { segments } of presentation.playlists.values()) {
        t.ok(segments.length >= 7)
        t.notOk(segments.some(({ discontinuity }) => discontinuity))
      }
    }
  })
}

/** @returns a loop that ends before its last video frame */
function withoutCutFrame(loop: Buffer): Buffer {
  let at = loop.length - PACKET_BYTES
  while (!isUnitStart(loop, at) || readPesTimes(loop, at)?.isVideo !== true) at -= PACKET_BYTES
  return loop.subarray(0, at)
}
