/** Repetition of video that stays away beside audio. */
import t from 'tap'
import { HeldVideo } from '../../../src/hls/rendition/held-video.ts'
import { pesBytes } from '../../../src/mpegts/pes.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { VIDEO, videoUnit, type VideoUnitOptions } from '../source.ts'

const SEC = 90_000
const FRAME = 3000

/** Frame with a number at the end of its payload. */
function frame(number: number, dtsTicks: number, options: VideoUnitOptions = {}): PesUnit {
  const value = videoUnit(dtsTicks, options)
  value.payload[value.payload.length - 1] = number
  return value
}

const numberOf = ({ payload }: PesUnit) => payload.at(-1)!

/** Repetitions while audio goes on alone from one time to another, a PES packet in 0.1 s. */
function fill(video: HeldVideo, fromTicks: number, toTicks: number): PesUnit[] {
  const units: PesUnit[] = []
  for (let ticks = fromTicks; ticks <= toTicks; ticks += SEC / 10) units.push(...video.fill(ticks))
  return units
}

/** Groups of frames that are less than 0.1 s apart. */
function groupsOf(units: readonly PesUnit[]): PesUnit[][] {
  const groups: PesUnit[][] = []
  for (const [index, value] of units.entries()) {
    const before = units[index - 1]
    if (before === undefined || value.dtsTicks - before.dtsTicks > SEC / 10) groups.push([])
    groups.at(-1)!.push(value)
  }
  return groups
}

t.test('frames of the GOP so far are repeated in both their orders', async (t) => {
  const video = new HeldVideo()
  // I P B B: the second is presented last.
  const order = [0, 3, 1, 2]
  const sent = order.map((place, index) =>
    frame(index, index * FRAME, {
      key: index === 0,
      reorderTicks: (place - index + 1) * FRAME,
    }),
  )
  for (const value of sent) t.same(video.push(value), [value])
  t.same(fill(video, 0, 2 * SEC), [], 'tracks may come in turns')
  const groups = groupsOf(fill(video, 2.1 * SEC, 5 * SEC))
  t.equal(groups.length, 9, 'up to 0.25 s behind the audio')
  for (const [index, group] of groups.entries()) {
    const fromTicks = 4 * FRAME + (index * SEC) / 2
    t.same(group.map(numberOf), [0, 1, 2, 3])
    t.same(
      group.map(({ dtsTicks }) => dtsTicks - fromTicks),
      [0, 1, 2, 3],
    )
    t.same(
      group.map(({ ptsTicks }) => ptsTicks - fromTicks - FRAME),
      order,
    )
    t.ok(group.every(({ repetition }) => repetition?.untilTicks === fromTicks + SEC / 2))
  }
  const { chunks, payload } = groups[0]![0]!
  t.ok(pesBytes(chunks).subarray(-payload.length).equals(payload), 'and are in transport packets')
  t.ok(payload.equals(sent[0]!.payload))
})

t.test('slides 5 s apart that refer to each other all appear', async (t) => {
  const video = new HeldVideo()
  const published: PesUnit[] = []
  for (let slide = 0; slide < 20; slide++) {
    const value = frame(slide, slide * 5 * SEC, { key: slide === 0 })
    const units = video.push(value)
    t.equal(units?.at(-1), value, 'at its own time')
    published.push(...units!, ...fill(video, 0, 5 * SEC))
  }
  t.ok(
    published.every(({ dtsTicks }, index) => dtsTicks > (published[index - 1]?.dtsTicks ?? -1)),
    'in order',
  )
  const undecodable = published.filter((value, index) => {
    const number = numberOf(value)
    return number > 0 && numberOf(published[index - 1]!) !== number - 1
  })
  t.same(undecodable, [], 'each behind the one that it refers to')
  const latest = published.at(-1)!
  t.equal(numberOf(latest), 19)
  t.ok(latest.repetition!.untilTicks > 99 * SEC, 'up to the audio')
})

t.test('frames that come late are in the next repetition', async (t) => {
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true }))
  const repeated = fill(video, 0, 6 * SEC)
  const nextTicks = repeated.at(-1)!.repetition!.untilTicks
  t.same(video.push(frame(1, FRAME)), [])
  t.same(video.push(frame(2, nextTicks - FRAME)), [])
  const units = video.push(frame(3, nextTicks + FRAME))!
  t.same(units.map(numberOf), [0, 1, 2, 3])
  t.same(
    units.map(({ dtsTicks }) => dtsTicks - nextTicks),
    [0, 1, 2, FRAME],
  )
  t.same(video.push(frame(4, nextTicks + 2 * FRAME))?.map(numberOf), [4])
})

t.test('a late key frame with which no decoder begins ends the repetition', async (t) => {
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true }))
  fill(video, 0, 6 * SEC)
  const large = frame(1, SEC, { key: true, sizeBytes: 2 ** 19 + 100 })
  t.same(video.push(large), [large])
  const next = frame(2, SEC + FRAME)
  t.same(video.push(next), [next])
})

t.test('a late key frame with other parameter sets has them where it is repeated', async (t) => {
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true, newParameters: true }))
  t.notOk(fill(video, 0, 6 * SEC).some(({ newParameters }) => newParameters))
  t.same(video.push(frame(1, SEC, { key: true, newParameters: true })), [])
  const [first, ...others] = [...video.fill(6 * SEC), ...video.fill(7 * SEC)]
  t.ok(first?.newParameters)
  t.notOk(others.some(({ newParameters }) => newParameters))
})

t.test('a late key frame that another one ends tells nothing of the next repetition', async (t) => {
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true }))
  fill(video, 0, 6 * SEC)
  t.same(video.push(frame(1, SEC, { key: true, newParameters: true })), [])
  const large = frame(2, 2 * SEC, { key: true, sizeBytes: 2 ** 19 + 100 })
  t.same(video.push(large), [large])
  const next = frame(3, 8 * SEC, { key: true, newParameters: true })
  t.same(video.push(next), [next])
  const units = fill(video, 0, 6 * SEC)
  t.ok(units.length > 0)
  t.notOk(
    units.some(({ newParameters }) => newParameters),
    'it was published with them',
  )
})

t.test('of a GOP that is too large the key frame is repeated, up to the next one', async (t) => {
  const small = { key: false, sizeBytes: 1000 }
  const cases = { bytes: { frames: 120, sizeBytes: 5000 }, frames: { frames: 129, sizeBytes: 500 } }
  for (const [bound, { frames, sizeBytes }] of Object.entries(cases)) {
    const video = new HeldVideo()
    for (let index = 0; index < frames; index++)
      video.push(frame(index, index * FRAME, { key: index === 0, sizeBytes }))
    t.ok(video.sizeBytes <= 512 * 1024, bound)
    t.ok(fill(video, 0, 8 * SEC).every((value) => numberOf(value) === 0))
    t.equal(video.push(frame(1, 14 * SEC, small)), undefined)
    t.equal(video.push(frame(2, 14 * SEC + FRAME, small)), undefined)
    t.same(video.push(frame(3, 15 * SEC, { key: true }))?.map(numberOf), [0, 3])
    t.same(video.push(frame(4, 15 * SEC + FRAME))?.map(numberOf), [4])
  }
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true, sizeBytes: 2 ** 19 + 100 }))
  t.same(fill(video, 0, 8 * SEC), [])
  const late = frame(1, 9 * SEC)
  t.same(video.push(late), [late], 'nothing is dropped where nothing was repeated')
})

t.test('no more than 512 KiB and 128 frames are repeated in 1 s of audio', async (t) => {
  for (const { frames, sizeBytes } of [
    { frames: 1, sizeBytes: 500_000 },
    { frames: 60, sizeBytes: 8000 },
    { frames: 128, sizeBytes: 500 },
    { frames: 2, sizeBytes: 500 },
  ]) {
    const video = new HeldVideo()
    for (let index = 0; index < frames; index++)
      video.push(frame(index, index * FRAME, { key: index === 0, sizeBytes }))
    const units = fill(video, 0, 20 * SEC)
    const sec = (units.at(-1)!.repetition!.untilTicks - units[0]!.dtsTicks) / SEC
    const sizes = units.reduce((sum, { payload }) => sum + payload.length, 0)
    t.ok(sec > 18, `${sec} s`)
    t.ok(sizes / sec <= 2 ** 19 + 1, `${sizes / sec} bytes a second`)
    t.ok(units.length / sec <= 128.1, `${units.length / sec} frames a second`)
  }
})

t.test('the size is that of all frames held, whatever their sizes', async (t) => {
  const video = new HeldVideo()
  const sizes = [1000, 1500, 4000]
  for (const [index, sizeBytes] of sizes.entries())
    video.push(frame(index, index * FRAME, { key: index === 0, sizeBytes }))
  const repeated = fill(video, 0, 5 * SEC).slice(0, sizes.length)
  t.same(repeated.map(numberOf), [0, 1, 2])
  const heldBytes = repeated.reduce((sum, { payload }) => sum + payload.length, 0)
  t.ok(video.sizeBytes >= heldBytes, `${video.sizeBytes} of ${heldBytes} bytes`)
  t.ok(video.sizeBytes <= 2 * heldBytes)
})

t.test('audio whose clock runs ahead brings four repetitions at once', async (t) => {
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true }))
  t.equal(video.fill(1000 * SEC).length, 4)
  t.equal(video.fill(1000 * SEC).length, 4)
})

t.test('nothing is repeated that decoders cannot begin with', async (t) => {
  const withType = (track: typeof VIDEO, header: number) => {
    const value = { ...frame(0, 0, { key: true }), track }
    value.payload[value.payload.indexOf(0x65)] = header
    return value
  }
  const h265 = { ...VIDEO, codec: 'h265' as const, streamType: 0x24 }
  const repetitions = (value: PesUnit) => {
    const video = new HeldVideo()
    video.push(value)
    return fill(video, 0, 5 * SEC)
  }
  t.equal(repetitions(withType(VIDEO, 0x65)).length, 9)
  t.equal(repetitions(withType(VIDEO, 0x41)).length, 0, 'an I picture that is no IDR picture')
  const [repeated] = repetitions(withType(h265, 21 << 1))
  t.ok(repeated?.payload.includes(Buffer.from([0, 0, 1, 18 << 1])), 'CRA is BLA')
  const damaged = { ...frame(0, 0, { key: true }), damaged: true }
  t.equal(repetitions(damaged).length, 0)
  const video = new HeldVideo()
  video.push(frame(0, 0, { key: true }))
  video.describe({ ...VIDEO, streamType: 0x24 })
  t.equal(fill(video, 0, 5 * SEC).length, 0, 'another format')
})
