/**
 * A worker that counts datagrams: what the socket alone costs in Node, before any protocol.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { enlargeReceiveBuffer } from '../../src/srt/io/socket.ts'
import { loopDelayP99Ms, selfUsage, type Usage } from '../support/usage.ts'
import { answer, readTask } from '../support/worker.ts'

export interface CounterAnswers {
  port(): number
  report(): CounterReport
  loopDelayP99Ms(durationMs: number): Promise<number>
}

export interface CounterReport {
  readonly usage: Usage
  readonly packets: number
}

await readTask()

let packets = 0
const socket = createSocket('udp4').bind(0, '127.0.0.1')
await once(socket, 'listening')
enlargeReceiveBuffer(socket)
socket.on('message', () => packets++)

answer<CounterAnswers>({
  port: () => socket.address().port,
  report: () => ({ usage: selfUsage(), packets }),
  loopDelayP99Ms,
})
