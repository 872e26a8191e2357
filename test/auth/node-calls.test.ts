/**
 * Signatures of calls between nodes: what they cover, and that no other text passes for one.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { sign } from '../../src/auth/signature.ts'
import { NodeCalls, type NodeCall } from '../../src/auth/node-calls.ts'

const SECRET = 's'.repeat(32)
const NOW_MS = 1_800_000_000_000

const callsOf = (secrets: readonly string[] = [SECRET], wallMs = NOW_MS) =>
  new NodeCalls(() => secrets, { wallMs: () => wallMs })

const CALL: NodeCall = {
  method: 'POST',
  path: '/api/kick?x=1',
  body: Buffer.from('{"stream_id":"a"}'),
  client: '192.0.2.7',
}

t.test('verifies a call: its client, and the body that it has', async (t) => {
  const verified = callsOf().verify(CALL, callsOf().sign(CALL))
  t.equal(verified?.client, '192.0.2.7')
  t.equal(verified?.hasBody(CALL.body!), true)
  t.equal(verified?.hasBody(Buffer.from('{"stream_id":"b"}')), false)
  t.equal(verified?.hasBody(Buffer.alloc(0)), false)
})

t.test('verifies a call of the node itself, without client and body', async (t) => {
  const call = { method: 'GET', path: '/video/a/playlist.m3u8' }
  const verified = callsOf().verify(call, callsOf().sign(call))
  t.ok(verified)
  t.equal(verified?.client, undefined)
  t.equal(verified?.hasBody(Buffer.alloc(0)), true)
  t.equal(verified?.hasBody(Buffer.from('x')), false)
})

t.test('rejects another method, another path, another secret and no secret', async (t) => {
  const header = callsOf().sign(CALL)
  t.equal(callsOf().verify({ ...CALL, method: 'GET' }, header), undefined)
  t.equal(callsOf().verify({ ...CALL, path: '/api/kick?x=2' }, header), undefined)
  t.equal(callsOf(['o'.repeat(32)]).verify(CALL, header), undefined)
  t.equal(callsOf([]).verify(CALL, header), undefined)
})

t.test('accepts both secrets of a rotation, and signs with the first', async (t) => {
  const fresh = 'n'.repeat(32)
  const header = callsOf([fresh, SECRET]).sign(CALL)
  t.equal(callsOf().verify(CALL, header), undefined)
  t.ok(callsOf([SECRET, fresh]).verify(CALL, header))
})

t.test('accepts clocks that differ by 60 s, and no more', async (t) => {
  const header = callsOf().sign(CALL)
  for (const [offsetMs, isAccepted] of [
    [-60_001, false],
    [-60_000, true],
    [60_000, true],
    [60_001, false],
  ] as const) {
    const verified = callsOf([SECRET], NOW_MS + offsetMs).verify(CALL, header)
    t.equal(verified !== undefined, isAccepted, `${offsetMs} ms`)
  }
})

t.test('rejects a client that is no address, although its signature is valid', async (t) => {
  const header = callsOf().sign({ ...CALL, client: '1.2.3.4.5' })
  t.equal(callsOf().verify(CALL, header), undefined)
  for (const client of ['::1', '2001:db8::7', '::ffff:192.0.2.7']) {
    const { client: seen } = callsOf().verify(CALL, callsOf().sign({ ...CALL, client })) ?? {}
    t.equal(seen, client)
  }
})

t.test('signs a text that no LT-SIGNATURE of the same secret covers', async (t) => {
  const fields = `${NOW_MS} - -`
  const forged = sign(Buffer.from(`GET\n/video/a/b.ts\n${fields}`), SECRET)
  t.equal(
    callsOf().verify({ method: 'GET', path: '/video/a/b.ts' }, `${fields} ${forged}`),
    undefined,
  )
})

t.test('verifies every call that it has signed, and none with one character changed', async () => {
  const call = fc.record({
    method: fc.constantFrom('GET', 'HEAD', 'POST'),
    path: fc.webPath().map((path) => `/${path}`),
    body: fc.uint8Array({ maxLength: 100 }),
    client: fc.option(fc.oneof(fc.ipV4(), fc.ipV6()), { nil: undefined }),
  })
  fc.assert(
    fc.property(call, fc.nat(), fc.nat(255), (signed, place, code) => {
      const header = callsOf().sign(signed)
      const verified = callsOf().verify(signed, header)
      const isVerified = verified?.client === signed.client && verified?.hasBody(signed.body)
      const at = place % header.length
      const changed = header.slice(0, at) + String.fromCharCode(code) + header.slice(at + 1)
      return isVerified && (changed === header || !callsOf().verify(signed, changed))
    }),
    { numRuns: 2000 },
  )
})

t.test('rejects any text of a client without the secret, and never throws', async () => {
  const hex = fc.stringMatching(/^[0-9a-f]{64}$/)
  const wellFormed = fc
    .tuple(fc.constantFrom(String(NOW_MS), '0', '9'.repeat(15)), hex, fc.ipV6(), hex)
    .map((fields) => fields.join(' '))
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ maxLength: 300 }), wellFormed),
      (header) => callsOf().verify(CALL, header) === undefined,
    ),
    { numRuns: 5000 },
  )
})
