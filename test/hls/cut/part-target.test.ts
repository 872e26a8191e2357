import t from 'tap'
import { PartTarget } from '../../../src/hls/cut/part-target.ts'
import type { Track } from '../../../src/mpegts/track.ts'
import { AUDIO, audioUnit, videoUnit } from '../source.ts'

const SEC = 90_000

interface Source {
  readonly fps: number
  readonly partSec?: number
  readonly gopSec?: number
  /** Audio beside the video, one PES packet every 0.2 s. */
  readonly audios?: readonly Track[]
}

const audioOf = (codec: Track['codec'], sampleRate: number, codecString = 'mp4a.40.2'): Track => ({
  ...{ ...AUDIO, codec },
  parameters: { codecString, sampleRate, channels: 2 },
})

/** PART-TARGET of four seconds of media, in segments of 2 s. */
function choose({ fps, partSec = 0.2, gopSec = 2, audios = [] }: Source): number | undefined {
  const target = new PartTarget(partSec)
  for (let frame = 0; frame <= 4 * fps; frame++) {
    target.addFrame(videoUnit(Math.round((frame * SEC) / fps)))
  }
  for (let n = 0; n < 20; n++) {
    for (const track of audios) target.addOther({ ...audioUnit(n * 0.2 * SEC), track })
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

t.test('beside audio, PART-TARGET is a whole number of audio frames above that', async (t) => {
  t.equal(choose({ fps: 30, audios: [AUDIO] })?.toFixed(5), '0.21333', '10 frames of 21.3 ms')
  t.equal(choose({ fps: 30, audios: [audioOf('aac', 44_100)] })?.toFixed(5), '0.20899', '9 frames')
  t.equal(choose({ fps: 30, audios: [audioOf('mp3', 44_100)] })?.toFixed(5), '0.20899', '8 frames')
  t.equal(choose({ fps: 30, audios: [audioOf('ac3', 48_000)] })?.toFixed(5), '0.22400', '7 frames')
  const heAac = audioOf('aac', 48_000, 'mp4a.40.5')
  t.equal(choose({ fps: 30, audios: [heAac] })?.toFixed(5), '0.21333', '5 frames of 2048 samples')
  const both = [AUDIO, audioOf('ac3', 48_000)]
  t.equal(choose({ fps: 30, audios: both })?.toFixed(5), '0.22400', 'of the longest frames')
})

t.test('PART-TARGET leaves 4 % beside any audio', async (t) => {
  const audios = [AUDIO, audioOf('aac', 44_100), audioOf('mp3', 48_000), audioOf('ac3', 48_000)]
  for (const fps of [10, 12.5, 15, 23.976, 24, 25, 29.97, 30, 50, 59.94, 60, 120]) {
    for (const partSec of [0.1, 0.2, 0.333, 0.5]) {
      for (const track of audios) {
        const alone = choose({ fps, partSec })!
        const beside = choose({ fps, partSec, audios: [track] })!
        const frameSec = (FRAME_SAMPLES[track.codec] ?? 0) / track.parameters!.sampleRate!
        const frames = beside / frameSec
        // A tick is the least that PART-TARGET can be rounded by.
        const isWhole = Math.abs(frames - Math.round(frames)) * frameSec <= 1 / SEC + 1e-9
        if (!isWhole || beside < alone || beside >= alone + frameSec + 1 / SEC) {
          t.fail(`${fps} fps, parts of ${partSec} s beside ${track.codec}: ${beside} s`)
        }
      }
    }
  }
  t.pass('for every rate')
})

/** Samples in a frame (ISO/IEC 14496-3 4.5.1.1, 11172-3 2.4.2.1; ETSI TS 102 366 4.1). */
const FRAME_SAMPLES: Readonly<Partial<Record<Track['codec'], number>>> = {
  ...{ aac: 1024, mp3: 1152, ac3: 1536 },
}

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
  t.equal(target.choose(2 * SEC, 1.8 * SEC)?.toFixed(5), '0.21333')
})
