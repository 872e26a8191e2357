import t from 'tap'
import { MillraceError, REFUSALS, type ErrorCode } from '../src/errors.ts'
import { RejectCode } from '../src/srt/wire/reject-code.ts'

/** The log puts this before the message of a rejected encoder. */
const PREFIX = 'encoder rejected: '

const MAX_CHARACTERS = 160

/** Messages that clients know to the letter. */
const EXACT: Partial<Record<ErrorCode, string>> = {
  SIGNATURE_MISSING: 'Missing Header for Verification!',
  SIGNATURE_INVALID: 'Invalid Request',
  STREAM_KEY_EXPIRED: 'Token expired',
}

const CODES = Object.keys(REFUSALS) as ErrorCode[]
const SRT_CODES = CODES.filter((code) => 'srt' in REFUSALS[code])

t.test('a refusal is one sentence of at most 160 characters, also in the log', async (t) => {
  t.ok(CODES.length >= 34, `${CODES.length} codes`)
  for (const code of CODES) {
    const { message } = new MillraceError(code)
    t.ok(message.length > 5 && PREFIX.length + message.length <= MAX_CHARACTERS, code)
    t.match(message, /^\S.*[^.\s]$/, code)
    if (code in EXACT) t.equal(message, EXACT[code])
  }
})

t.test('the API says what to do where a message is fixed', async (t) => {
  for (const code of CODES.filter((each) => each in EXACT && !SRT_CODES.includes(each))) {
    const { hint = '' } = new MillraceError(code)
    t.match(hint, /^\S.{20,}[^.\s]$/, code)
    t.ok(hint.length <= MAX_CHARACTERS, code)
  }
})

t.test('a refusal of an encoder says what is wrong and what to do', async (t) => {
  t.ok(SRT_CODES.length >= 12, `${SRT_CODES.length} codes`)
  // `Streams` adds the advice to STREAM_NOT_FOUND, which the API also uses.
  for (const code of SRT_CODES.filter((each) => !(each in EXACT) && each !== 'STREAM_NOT_FOUND')) {
    t.match(new MillraceError(code).message, /^[^:]{10,}: .{10,}$/, code)
  }
})

t.test('an error has the status and the reject code of its refusal', async (t) => {
  t.match(new MillraceError('STREAM_NOT_FOUND'), { httpStatus: 404, rejectCode: 1010 })
  t.match(new MillraceError('USAGE'), { httpStatus: 500, rejectCode: RejectCode.UNKNOWN })
  const cause = new Error('cause')
  t.match(new MillraceError('INTERNAL', { message: 'detail', cause }), { message: 'detail', cause })
})
