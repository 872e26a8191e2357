/** mux.js, the reader of video.js, as a judge of init segments, fragments and event messages. */
import probe from 'mux.js/lib/mp4/probe.js'
import t from 'tap'
import { FragmentWriter } from '../../src/mp4/fragment.ts'
import { readFixture } from '../mpegts/demux.ts'
import { fragment, readAudio, readVideo, unitsOfKind } from './fragmented-track.ts'
import { ChunkMemory } from './chunk-memory.ts'

t.test('mux.js reads tracks, codecs and start times', async (t) => {
  const video = readVideo(unitsOfKind(readFixture('h264-aac'), 'video'), 'h264')
  const audio = readAudio(unitsOfKind(readFixture('h264-aac'), 'audio'), { codec: 'aac' })
  for (const [samples, track] of [
    [video, { id: 1, type: 'video', codec: 'avc1.4d400b', timescale: 90_000 }],
    // mux.js takes the stream type of esds for the audio object type: no AAC has the right one.
    [audio, { id: 1, type: 'audio', codec: /^mp4a\.40\./, timescale: 48_000 }],
  ] as const) {
    const { init, fragments } = fragment(samples)
    t.match(probe.tracks(init), [track])
    const timescales = probe.timescale(init)
    t.strictSame(timescales, { 1: track.timescale })
    for (const { chunks, decodeTicks } of fragments) {
      const startSec = probe.startTime(timescales, Buffer.concat(chunks))
      t.equal(startSec, decodeTicks / track.timescale)
    }
  }
})

t.test('mux.js reads ID3 of event messages with its time', async (t) => {
  const text = Buffer.from('\u0003key\0value')
  const frame = Buffer.concat([
    Buffer.from('TXXX'),
    Buffer.from([0, 0, 0, text.length, 0, 0]),
    text,
  ])
  const tag = Buffer.concat([
    Buffer.from('ID3\u0004\0\0\0\0\0'),
    Buffer.from([frame.length]),
    frame,
  ])
  const [sample] = readVideo(unitsOfKind(readFixture('h264-aac'), 'video'), 'h264')
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  writer.push(sample!)
  const end = { untilTicks: sample!.decodeTicks + 3000, startsSegment: true }
  const { chunks } = writer.end({ ...end, events: [{ id: 1, ptsTicks: 180_000, tag }] })!
  t.match(probe.getEmsgID3(Buffer.concat(chunks), 0), [
    { cueTime: 2, frames: [{ key: 'TXXX', description: 'key', data: 'value' }] },
  ])
})
