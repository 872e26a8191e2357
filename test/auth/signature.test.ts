import * as fc from 'fast-check'
import t from 'tap'
import { findSigner, keyId, sign } from '../../src/auth/signature.ts'

// RFC 4231 section 4.3, test case 2.
const SECRET = 'Jefe'
const BODY = Buffer.from('what do ya want for nothing?')
const SIGNATURE = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'

function verify(bytes: Uint8Array, signature: string, secret: string): boolean {
  return findSigner(bytes, signature, [secret]) === secret
}

t.test('signs RFC 4231 test case 2 in lower-case hexadecimal', async (t) => {
  t.equal(sign(BODY, SECRET), SIGNATURE)
})

t.test('accepts hexadecimal digits in either case (RFC 4648 section 8)', async (t) => {
  t.ok(verify(BODY, SIGNATURE, SECRET))
  t.ok(verify(BODY, SIGNATURE.toUpperCase(), SECRET))
})

t.test('rejects the signature of a body that differs only in whitespace', async (t) => {
  const body = Buffer.from('{"stream_id":"demo"}')
  t.notOk(verify(Buffer.from('{"stream_id": "demo"}'), sign(body, SECRET), SECRET))
  t.notOk(verify(body, sign(body, SECRET), 'another secret'))
})

t.test('accepts signatures of both secrets during a rotation', async (t) => {
  for (const secret of ['new', 'old']) {
    t.equal(findSigner(BODY, sign(BODY, secret), ['new', 'old']), secret)
  }
  t.equal(findSigner(BODY, SIGNATURE, ['new', 'old']), undefined)
  t.equal(findSigner(BODY, SIGNATURE, []), undefined)
})

t.test('rejects malformed hexadecimal without an exception', async (t) => {
  const malformed = [
    '',
    ' ',
    SIGNATURE.slice(0, 62),
    `${SIGNATURE}00`,
    ` ${SIGNATURE}`,
    `${SIGNATURE}\n`,
    `0x${SIGNATURE}`,
    `${SIGNATURE}, ${SIGNATURE}`,
    SIGNATURE.replace('5', 'g'),
    '\u{1d7d3}'.repeat(64),
  ]
  for (const signature of malformed) {
    t.notOk(verify(BODY, signature, SECRET), JSON.stringify(signature))
  }
})

t.test('verifies random bodies with their own signature and no other', async () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), fc.string({ minLength: 1 }), (a, b, secret) => {
      const signature = sign(a, secret)
      return (
        verify(a, signature, secret) &&
        verify(b, signature, secret) === (Buffer.compare(a, b) === 0)
      )
    }),
  )
})

t.test('the id of a secret has 8 hexadecimal digits that differ between secrets', async (t) => {
  t.match(keyId('new'), /^[0-9a-f]{8}$/)
  t.not(keyId('new'), keyId('old'))
  t.equal(keyId('new'), keyId('new'))
})
