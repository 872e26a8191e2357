import t from 'tap'
import { connect, type ConnectOptions } from '../../../src/srt/index.ts'

t.test('options out of range throw before the first datagram', async (t) => {
  const wrong: (Partial<ConnectOptions> & { message: RegExp })[] = [
    { latencyMs: 65_536, message: /^latencyMs is a whole number from 0 to 65535, not 65536$/ },
    { latencyMs: 0.5, message: /^latencyMs / },
    { peerLatencyMs: -1, message: /^peerLatencyMs / },
    { initialSequenceNumber: 0x7fffffff, message: /^initialSequenceNumber / },
    { startTimestampUs: 2 ** 32, message: /^startTimestampUs / },
    { sendBufferPackets: 0, message: /^sendBufferPackets / },
    { maxBandwidthBps: 0, message: /^maxBandwidthBps / },
    { maxBandwidthBps: NaN, message: /^maxBandwidthBps / },
  ]
  for (const { message, ...options } of wrong) {
    await t.rejects(connect({ host: '127.0.0.1', port: 9, ...options }), {
      name: 'RangeError',
      message,
    })
  }
})
