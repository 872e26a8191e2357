/** Times of frames between stamps, where frames are lost or the order is wrong. */
import t from 'tap'
import { FrameClock, type UntimedFrame } from '../../../src/mpegts/demux/frame-clock.ts'

const FRAME_TICKS = 3600

const stampAt = (ticks: number) => ({ ptsTicks: ticks, dtsTicks: ticks })

/** Frames with a stamp at each tenth; `change` alters one. */
function framesOf(
  count: number,
  change: (index: number) => Partial<UntimedFrame> | undefined = () => ({}),
): UntimedFrame[] {
  return Array.from({ length: count }, (_, index) => {
    const stamp = index % 10 === 0 ? stampAt(index * FRAME_TICKS) : undefined
    const usual = { stamp, startsOrder: index === 0, order: 2 * index, damaged: false }
    const changed = change(index)
    return changed === undefined ? [] : [{ ...usual, ...changed }]
  }).flat()
}

function timesOf(frames: readonly UntimedFrame[]) {
  const clock = new FrameClock(2)
  return [...frames.flatMap((frame) => clock.push(frame)), ...clock.flush()].map(
    ([, { ptsTicks, dtsTicks }]) => [dtsTicks / FRAME_TICKS, ptsTicks / FRAME_TICKS],
  )
}

const regular = (count: number) => Array.from({ length: count }, (_, index) => [index, index])

t.test('frames go on by the duration that was counted', async (t) => {
  t.strictSame(timesOf(framesOf(40)), regular(40))
})

t.test('lost frames shift none behind the next stamp', async (t) => {
  for (const damaged of [true, false]) {
    const times = timesOf(
      framesOf(60, (index) =>
        index > 30 && index < 35 ? undefined : { damaged: damaged && index === 35 },
      ),
    )
    // Without the mark of a loss, the duration is wrong up to the next stamp, and frames wait for it.
    t.strictSame(times.slice(-3), regular(60).slice(-3))
    t.ok(
      times.every(
        ([dts, pts], index) => pts! >= dts! && (index === 0 || dts! > times[index - 1]![0]!),
      ),
    )
  }
})

t.test('one wrong order moves no frame of the next order', async (t) => {
  const times = timesOf(
    framesOf(60, (index) => ({
      startsOrder: index % 30 === 0,
      order: 2 * (index % 30) + (index === 7 ? 1 : 0),
    })),
  )
  t.strictSame(times.slice(30), regular(60).slice(30))
})

t.test('a single stamp is enough, and holds back no more than the first frames', async (t) => {
  const clock = new FrameClock(2)
  clock.declaredTicks = FRAME_TICKS
  const frames = framesOf(200, (index) => ({ stamp: index === 0 ? stampAt(0) : undefined }))
  const released = frames.map((frame) => clock.push(frame).length)
  t.strictSame(released, [
    1,
    ...Array.from({ length: 64 }, () => 0),
    65,
    ...Array.from({ length: 134 }, () => 1),
  ])
})
