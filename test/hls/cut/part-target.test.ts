import t from 'tap'
import { PartTarget } from '../../../src/hls/cut/part-target.ts'
import { audioUnit, videoUnit } from '../source.ts'

const SEC = 90_000

interface Source {
  readonly fps: number
  readonly partSec?: number
  readonly gopSec?: number
  /** Duration of the audio PES packets. */
  readonly audioSec?: number
}

/** PART-TARGET of four seconds of media, in segments of 2 s. */
function choose({ fps, partSec = 0.2, gopSec = 2, audioSec }: Source): number | undefined {
  const target = new PartTarget(partSec)
  for (let frame = 0; frame <= 4 * fps; frame++) {
    target.addFrame(videoUnit(Math.round((frame * SEC) / fps)))
  }
  if (audioSec !== undefined) {
    for (let n = 0; n * audioSec < 4; n++)
      target.addOther(audioUnit(Math.round(n * audioSec * SEC)))
  }
  return target.choose(gopSec * SEC, 1.8 * SEC)
}

t.test('PART-TARGET is a whole number of frames and 4 % (4.4.3.7)', async (t) => {
  t.equal(choose({ fps: 30 })?.toFixed(5), '0.20800', '6 frames')
  t.equal(choose({ fps: 30, partSec: 0.333 })?.toFixed(5), '0.34667', '10 frames')
  t.equal(choose({ fps: 25 })?.toFixed(5), '0.20800', '5 frames')
  t.equal(choose({ fps: 24 })?.toFixed(5), '0.21667', '5 frames')
  t.equal(choose({ fps: 10 })?.toFixed(5), '0.20800', '2 frames')
  t.equal(choose({ fps: 4 })?.toFixed(5), '0.26000', 'a single frame')
})

t.test('the number of frames divides a GOP of which a segment holds several', async (t) => {
  t.equal(choose({ fps: 24, gopSec: 1 })?.toFixed(5), '0.17333', '4 of 24 frames')
  t.equal(choose({ fps: 29, gopSec: 1 })?.toFixed(5), '0.21518', '29 is prime: 6 frames')
})

t.test('no part is shorter than the audio PES packets', async (t) => {
  t.equal(choose({ fps: 30, audioSec: 0.17 })?.toFixed(5), '0.20800')
  t.equal(choose({ fps: 30, audioSec: 0.363 })?.toFixed(5), '0.38133', '11 frames')
  t.equal(choose({ fps: 30, audioSec: 3 })?.toFixed(5), '0.97067', 'at most 1 s: 28 frames')
})

t.test('a stream with frames of over 1 s has no parts', async (t) => {
  t.equal(choose({ fps: 1 }), 1)
  t.equal(choose({ fps: 0.9 }), undefined)
})

t.test('lost media does not change PART-TARGET', async (t) => {
  const target = new PartTarget(0.2)
  for (let frame = 0; frame < 120; frame++) {
    if (frame % 20 !== 7) target.addFrame(videoUnit(frame * 3000))
    if (frame % 5 === 0 && frame !== 50) target.addOther(audioUnit(frame * 3000))
  }
  t.equal(target.choose(2 * SEC, 1.8 * SEC)?.toFixed(5), '0.20800')
})
