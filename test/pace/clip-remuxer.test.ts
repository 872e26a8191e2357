import t from 'tap'
import { demux, payloadOf, readFixture, unitsOf } from '../mpegts/demux.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { h264AccessUnit } from '../support/access-units.ts'
import { AUDIO_PID, AUDIO_TICKS, buildClip, remux, VIDEO_PID } from './loop-clips.ts'

t.test('a clip begins with the first key frame, and with the audio of its time', async (t) => {
  const file = buildClip({ videoFrames: 60, audioFrames: 94, cutFrames: 10 })
  const [first, ...others] = unitsOf(demux(remux(file)))
  const units = [first!, ...others]
  const video = units.filter(({ track }) => track.pid === VIDEO_PID)
  const audio = units.filter(({ track }) => track.pid === AUDIO_PID)
  t.equal(video.length, 50)
  t.ok(video[0]!.randomAccess)
  const leadTicks = audio[0]!.ptsTicks - video[0]!.ptsTicks
  t.ok(leadTicks <= 0 && leadTicks > -AUDIO_TICKS, `${leadTicks}`)
})

t.test('an audio PES packet has a frame, with the bytes and the time of the file', async (t) => {
  for (const name of ['demo', 'mp3', 'h264-ac3-192', 'eac3', 'h264-mp2-nit']) {
    const audioOf = (bytes: Buffer) =>
      unitsOf(demux(bytes)).filter(({ track }) => track.kind === 'audio')
    const [before, after] = [audioOf(readFixture(name)), audioOf(remux(readFixture(name)))]
    t.ok(after.length > before.length, `${name}: ${before.length} to ${after.length}`)
    const bytes = Buffer.concat(before.map(payloadOf))
    const kept = Buffer.concat(after.map(payloadOf))
    t.ok(bytes.includes(kept.subarray(0, bytes.length / 2)), name)
    t.ok(
      before.every(({ ptsTicks }) =>
        ptsTicks < after[0]!.ptsTicks
          ? true
          : after.some((frame) => Math.abs(frame.ptsTicks - ptsTicks) <= 1),
      ),
      `${name}: the times`,
    )
  }
})

t.test('a clip is remuxed to itself', async (t) => {
  const clip = remux(buildClip({ videoFrames: 60, audioFrames: 94 }))
  t.ok(remux(clip).equals(clip))
})

t.test('a file that cannot be looped is refused with what is wrong', async (t) => {
  const refused = (file: Buffer, message: RegExp) =>
    t.throws(() => remux(file), { name: 'MillraceError', code: 'MEDIA_INVALID', message })
  refused(Buffer.alloc(0), /no MPEG transport stream/)
  refused(Buffer.from('a text, not a transport stream'.repeat(1000)), /no MPEG transport stream/)
  const frames = buildClip({ videoFrames: 60, audioFrames: 94, cutFrames: 60 })
  refused(frames, /its video has no frame with which players can start/)
  const mpeg2 = new TsBuilder().program([{ pid: VIDEO_PID, streamType: 0x02 }])
  refused(mpeg2.bytes, /neither H.264 or H.265 video nor audio/)
  const fast = new TsBuilder().program([{ pid: VIDEO_PID, streamType: 0x1b }])
  for (const ptsTicks of [900_000, 900_900]) {
    const payload = h264AccessUnit({ key: true, sizeBytes: 200_000 })
    fast.unit(VIDEO_PID, pesPacket(payload, { ptsTicks, length: 'none' }))
  }
  refused(fast.bytes, /more than 100 Mbit\/s/)
  const silent = new TsBuilder()
    .program([{ pid: VIDEO_PID, streamType: 0x1b }])
    .unit(VIDEO_PID, pesPacket(h264AccessUnit({ key: true, sizeBytes: 500 }), { ptsTicks: 9000 }))
    .program([
      { pid: VIDEO_PID, streamType: 0x1b },
      { pid: AUDIO_PID, streamType: 0x0f },
    ])
  refused(silent.bytes, /its tracks change/)
})
