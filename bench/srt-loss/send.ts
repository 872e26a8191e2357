/**
 * Our caller as a program: publishes the payloads of standard input. `peers.ts` starts it beside srt-live-transmit.
 *
 *   send PORT LATENCY_MS
 *
 * @module
 */
import { connect } from '../../src/srt/index.ts'
import { PAYLOAD_BYTES } from './stream.ts'

const [port, latencyMs] = process.argv.slice(2).map(Number) as [number, number]
const caller = await connect({ host: '127.0.0.1', port, latencyMs, connectTimeoutMs: 15_000 })
process.stderr.write('connected\n')

let rest = Buffer.alloc(0)
process.stdin.on('data', (chunk: Buffer) => {
  const bytes = Buffer.concat([rest, chunk])
  let at = 0
  for (; at + PAYLOAD_BYTES <= bytes.length; at += PAYLOAD_BYTES) {
    if (!caller.send(bytes.subarray(at, at + PAYLOAD_BYTES))) throw new Error('not taken')
  }
  rest = bytes.subarray(at)
})
