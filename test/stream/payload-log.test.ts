import t from 'tap'
import { PayloadLog } from '../../src/stream/payload-log.ts'
import type { Program } from '../../src/mpegts/track.ts'

t.test('keeps one payload of a source whose program is not known', async (t) => {
  const log = new PayloadLog()
  const payload = Buffer.alloc(1316, 0x47)
  for (let packetsBefore = 0; packetsBefore < 700; packetsBefore += 7)
    log.push(payload, { packetsBefore, outputs: [], program: undefined })
  t.equal(log.sizeBytes, payload.length)
  t.equal(log.take().length, 1)
})

t.test('keeps a bounded number of payloads, however small they are', async (t) => {
  const log = new PayloadLog()
  const payload = Buffer.alloc(1, 0x47)
  const program: Program = { programNumber: 1, pcrPid: 0x101, tracks: [] }
  let max = 0
  for (let packetsBefore = 0; packetsBefore < 200_000; packetsBefore++) {
    log.push(payload, { packetsBefore, outputs: [], program })
    max = Math.max(max, log.sizeBytes)
  }
  t.equal(max, 89_240)
})
