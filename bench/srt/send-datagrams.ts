/**
 * A worker that sends bare datagrams as `send.ts` sends packets: as many, as large, from as many sockets.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { HEADER_BYTES } from '../../src/srt/wire/packet.ts'
import { PAYLOAD_BYTES } from '../srt-loss/stream.ts'
import { pace } from '../support/pace.ts'
import { answer, readTask } from '../support/worker.ts'
import type { SenderAnswers, SendTask, SentReport } from './send.ts'

const { calls, packetsPerSec } = (await readTask()) as SendTask
const sockets = calls.map(() => createSocket('udp4'))
await Promise.all(
  sockets.map((socket, index) => {
    const connected = once(socket, 'connect')
    socket.connect(calls[index]!.port, '127.0.0.1')
    return connected
  }),
)

const datagram = Buffer.alloc(HEADER_BYTES + PAYLOAD_BYTES, 0xff)
let sent = 0
const send = (number: number) => {
  sockets[number % sockets.length]!.send(datagram)
  sent++
}
let streaming = true
const sending = pace(packetsPerSec * sockets.length, send, () => streaming)

/** Of all sockets together. */
const report = (): SentReport[] => [{ packets: sent, retransmissions: 0, dropped: 0 }]

answer<SenderAnswers>({
  report,
  finish: async () => {
    streaming = false
    await sending
    return report()
  },
})
