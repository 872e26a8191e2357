import t from 'tap'
import { LoopedClip } from '../../src/pace/looped-clip.ts'
import { payloadOf, readFixture } from '../mpegts/demux.ts'
import {
  AUDIO_TICKS,
  buildClip,
  inspect,
  NUMBER_AT,
  play,
  remux,
  stepsOf,
  VIDEO_TICKS,
  payloadsOf,
} from './loop-clips.ts'

/** Passes of 2 s, whatever the audio. */
const VIDEO_FRAMES = 60
/** 93.75 frames of audio are as long as the video. */
const AUDIO_FRAMES = [80, 91, 93, 94, 97, 105]

const sizeOf = (payloads: readonly Buffer[]) =>
  payloads.reduce((sum, { length }) => sum + length, 0)

t.test('all tracks go on evenly over the seam, whatever the length of the audio', async (t) => {
  for (const audioFrames of AUDIO_FRAMES) {
    for (const reordered of [false, true]) {
      const shape = { videoFrames: VIDEO_FRAMES, audioFrames, reordered }
      await t.test(JSON.stringify(shape), async (t) => {
        const { times, discontinuities } = inspect(t, play(remux(buildClip(shape)), 9))
        t.equal(discontinuities, 0)
        t.ok(times('video').length > 4 * VIDEO_FRAMES)
        t.same(stepsOf(times('video')), [VIDEO_TICKS])
        t.same(stepsOf(times('audio')), [AUDIO_TICKS])
      })
    }
  }
})

t.test('each audio frame keeps its time beside the video, however often it returns', async (t) => {
  for (const audioFrames of [91, 94, 105]) {
    const clip = remux(buildClip({ videoFrames: VIDEO_FRAMES, audioFrames }))
    const { units } = inspect(t, play(clip, 100))
    const audio = units
      .filter(({ track }) => track.kind === 'audio')
      .map((unit) => ({ ...unit, number: payloadOf(unit).readUInt16BE(NUMBER_AT) }))
    const startTicks = audio[0]!.ptsTicks
    const passTicks = VIDEO_FRAMES * VIDEO_TICKS
    const offsets = audio
      // The last frame repeated, for what the file lacks.
      .filter(({ number }, index) => number !== audio[index - 1]?.number)
      .map(({ ptsTicks, number }) => {
        const ticks = ptsTicks - startTicks - number * AUDIO_TICKS
        return Math.abs(ticks - Math.round(ticks / passTicks) * passTicks)
      })
    const worst = Math.max(...offsets)
    t.ok(offsets.length > 80 * 50 && worst <= AUDIO_TICKS / 2, `${audioFrames}: ${worst}`)
  }
})

t.test('timestamps that wrap in the loop go on', async (t) => {
  const startTicks = 2 ** 33 - 3 * 90_000
  const clip = remux(buildClip({ videoFrames: VIDEO_FRAMES, audioFrames: 94, startTicks }))
  const { times, discontinuities } = inspect(t, play(clip, 9))
  t.equal(discontinuities, 0)
  t.same(stepsOf(times('video')), [VIDEO_TICKS])
  t.same(stepsOf(times('audio')), [AUDIO_TICKS])
})

t.test('files of encoders loop without a discontinuity', async (t) => {
  for (const name of ['demo', 'h264-open-gop', 'h265-aac', 'gstreamer', 'h264-ac3-192', 'mp3']) {
    await t.test(name, async (t) => {
      const { times, discontinuities } = inspect(t, play(remux(readFixture(name)), 20))
      t.equal(discontinuities, 0)
      const video = stepsOf(times('video'))
      t.ok(video.length === 0 || video.at(-1)! - video[0]! <= 2, video.join())
      const audio = stepsOf(times('audio'))
      t.ok(audio.length === 0 || audio.at(-1)! - audio[0]! <= 1, audio.join())
    })
  }
})

t.test('media is sent when it is due', async (t) => {
  const clip = new LoopedClip(remux(buildClip({ videoFrames: VIDEO_FRAMES, audioFrames: 94 })))
  let bytes = 0
  for (let ms = 0; ms <= 20_000; ms += 50) bytes += sizeOf(payloadsOf(clip.takeUntil(ms * 1000)))
  const passBytes = remux(buildClip({ videoFrames: VIDEO_FRAMES, audioFrames: 94 })).length
  t.ok(Math.abs(bytes / passBytes - 10) < 0.1, `${bytes / passBytes} passes of 2 s in 20 s`)
})

t.test('after a pause, the clip goes on where it was, with 1 s of media at most', async (t) => {
  const file = remux(buildClip({ videoFrames: VIDEO_FRAMES, audioFrames: 94 }))
  const clip = new LoopedClip(file)
  const payloads = payloadsOf(clip.takeUntil(500_000))
  const late = payloadsOf(clip.takeUntil(3_600_000_000))
  t.ok(sizeOf(late) > 0.3 * file.length && sizeOf(late) < 0.7 * file.length, 'a second of two')
  t.same(clip.takeUntil(3_600_000_000), [], 'the rest is not made up for')
  payloads.push(...late, ...payloadsOf(clip.takeUntil(3_600_500_000)))
  const { times, discontinuities } = inspect(t, payloads)
  t.equal(discontinuities, 0)
  t.same(stepsOf(times('video')), [VIDEO_TICKS])
  const [first, last] = [times('video')[0]!, times('video').at(-1)!]
  t.ok(Math.abs(last - first - 2 * 90_000) < 0.2 * 90_000, 'the clock of the clip has run for 2 s')
})

t.test('clips share the bytes of a file, and change none', async (t) => {
  const file = remux(buildClip({ videoFrames: VIDEO_FRAMES, audioFrames: 94 }))
  const copy = Buffer.from(file)
  const [one, other] = [play(file, 5), play(file, 5)]
  t.ok(file.equals(copy))
  t.ok(Buffer.concat(one).equals(Buffer.concat(other)))
  t.ok(one.every(({ buffer }) => buffer !== file.buffer))
  t.ok(one.every(({ length }) => length > 0 && length <= 7 * 188 && length % 188 === 0))
})

t.test('a clip whose clock stands still takes no call for ever', async (t) => {
  const clip = new LoopedClip(Buffer.alloc(0))
  t.same(clip.takeUntil(1_000_000), [])
})
