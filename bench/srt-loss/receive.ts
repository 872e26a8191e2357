/**
 * Our listener as a program: writes the payloads of one publisher to standard output. `peers.ts` starts it beside
 * srt-live-transmit.
 *
 *   receive PORT LATENCY_MS
 *
 * @module
 */
import { createListener } from '../../src/srt/index.ts'

const [port, latencyMs] = process.argv.slice(2).map(Number) as [number, number]
await createListener({
  host: '127.0.0.1',
  port,
  latencyMs,
  accept: async () => ({
    sink: {
      open: () => {},
      push: (payload) => void process.stdout.write(payload),
      gap: () => {},
      end: () => process.exit(),
    },
  }),
})
