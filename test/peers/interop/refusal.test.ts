/**
 * Mismatched encryption: the caller is rejected with a specific code, for which libsrt has a message.
 */
import t from 'tap'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import {
  PAYLOAD_BYTES,
  PUBLISHERS,
  publishWith,
  connectOptions,
  type CallEncryption,
  type Publisher,
  type PublisherName,
} from './publishers.ts'
import { listen, RECEIVERS } from './receivers.ts'
import { receive } from './reception.ts'

const RIGHT = 'what-both-sides-know'
const WRONG = 'another-passphrase'

/** Messages of libsrt and of our caller by reject code. */
const WORDS: Readonly<Record<number, RegExp>> = {
  1010: /Incorrect passphrase|1010 \(BADSECRET\)/,
  1011: /Password required or unexpected|1011 \(UNSECURE\)/,
}

/** Passphrases of the listener and the caller, and the reject code. */
const MISMATCHES = [
  { what: 'the wrong passphrase', ours: RIGHT, theirs: WRONG, code: 1010 },
  { what: 'no passphrase where one is required', ours: RIGHT, theirs: undefined, code: 1011 },
  { what: 'a passphrase where none is expected', ours: undefined, theirs: RIGHT, code: 1011 },
] as const

t.jobs = 4

for (const publisher of Object.keys(PUBLISHERS) as PublisherName[]) {
  for (const [index, { what, ours, theirs, code }] of MISMATCHES.entries()) {
    const host = index % 2 === 0 ? '127.0.0.1' : '::1'
    t.test(`${publisher} with ${what}: ${code}`, { buffered: true }, async (t) => {
      const { tool, start }: Publisher = PUBLISHERS[publisher]
      if (tool !== undefined && !requireTool(t, tool)) return
      const received = await receive(t, {
        host,
        latencyMs: 120,
        ...(ours !== undefined && { passphrase: ours }),
      })
      const publication = start(t, { ...received.call, ...encrypted(theirs) })
      // ffmpeg connects once it has media to send.
      publication.write(Buffer.alloc(PAYLOAD_BYTES))
      await until(`reject ${code}`, () => received.listener.stats().rejects[code])
      // srtsink calls repeatedly and does not report the reason.
      if (publisher !== 'GStreamer') {
        await until(`${WORDS[code]}`, () => WORDS[code]!.test(publication.output()))
      }
      t.strictSame(Object.keys(received.listener.stats().rejects), [String(code)])
      t.equal(received.listener.stats().accepted, 0)
      t.equal(received.connections.length, 0)
    })
  }
}

for (const { what, ours, theirs, code } of MISMATCHES) {
  t.test(`our caller gets the code of srt-live-transmit for ${what}: ${code}`, async (t) => {
    if (!requireTool(t, 'srt-live-transmit')) return
    const query = ours === undefined ? '' : `passphrase=${ours}`
    const { port } = await listen(t, RECEIVERS['srt-live-transmit'], query)
    const { encryption } = encrypted(theirs)
    const publication = publishWith(t, {
      host: '127.0.0.1',
      port,
      ...(encryption && connectOptions(encryption)),
    })
    await t.rejects(publication.ready(), { code: 'SRT_REJECTED', message: WORDS[code]! })
  })
}

function encrypted(passphrase: string | undefined): { encryption?: CallEncryption } {
  return passphrase === undefined ? {} : { encryption: { passphrase, keyBytes: 16 } }
}
