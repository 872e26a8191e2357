/**
 * One listener at several addresses: publishers of every kind call each of them, and get responses from the called address.
 */
import t from 'tap'
import { createListener } from '../../../src/srt/index.ts'
import { requireAddresses } from '../../support/addresses.ts'
import { requireTool } from '../support/tools.ts'
import { PUBLISHERS, type Publisher } from './publishers.ts'
import { difference, play } from './reception.ts'

/** Half a second of a stream. */
const PACKETS = 100

const CELLS = [
  { listening: ['::'], called: '127.0.0.1' },
  { listening: ['::'], called: '::1' },
  { listening: ['::'], called: '::ffff:127.0.0.1' },
  { listening: ['127.0.0.1', '127.0.0.2'], called: '127.0.0.2' },
  { listening: ['127.0.0.1', '::1'], called: '::1' },
] as const

t.jobs = 4

for (const [name, { tool, start }] of Object.entries(PUBLISHERS) as [string, Publisher][]) {
  for (const { listening, called } of CELLS) {
    const title = `${name} calls ${called} of ${listening.join(', ')}: every byte arrives`
    t.test(title, { buffered: true }, async (t) => {
      if (tool !== undefined && !requireTool(t, tool)) return
      if (!(await requireAddresses(t, ...listening))) return
      const payloads: Buffer[] = []
      const remotes: string[] = []
      const listener = await createListener({
        host: listening,
        port: 0,
        latencyMs: 120,
        accept: async ({ remoteAddress }) => {
          remotes.push(remoteAddress)
          return {
            sink: {
              open: () => {},
              push: (payload) => payloads.push(payload),
              gap: (lostPackets) => t.fail(`${lostPackets} packets lost`),
              end: () => {},
            },
          }
        },
      })
      t.teardown(() => listener.close())
      const { port } = listener.address()
      const publication = start(t, { host: called, port, latencyMs: 1000 })
      const received = () => Buffer.concat(payloads)
      const stream = await play(publication, PACKETS, (bytes) => received().length >= bytes)
      t.equal(difference(received(), stream), '', publication.output())
      t.strictSame(remotes, [called === '::1' ? '::1' : '127.0.0.1'])
      t.match(listener.stats(), { accepted: 1, badCookies: 0, wrongSources: 0 })
    })
  }
}
