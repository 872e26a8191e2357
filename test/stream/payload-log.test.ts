import t from 'tap'
import { PayloadLog } from '../../src/stream/payload-log.ts'

t.test('keeps one payload of a source whose program is not known', async (t) => {
  const log = new PayloadLog()
  const payload = Buffer.alloc(1316, 0x47)
  for (let packetsBefore = 0; packetsBefore < 700; packetsBefore += 7)
    log.push(payload, { packetsBefore, outputs: [], program: undefined })
  t.equal(log.sizeBytes, payload.length)
  t.equal(log.take().length, 1)
})
