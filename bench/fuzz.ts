/**
 * `npm run fuzz -- --minutes N [--seed S]`: the fuzzing of test/srt/fuzz.ts at full speed, seed after seed. The first
 * violation ends it, with the seed that brings it back.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { deriveKey } from '../src/srt/key-encryption.ts'
import { fuzz } from '../test/srt/fuzz.ts'

const STEPS = 20_000

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
})
const minutes = Number(values.minutes)
const firstSeed = Number(values.seed)
if (!(minutes > 0 && minutes <= 1440) || !Number.isSafeInteger(firstSeed)) {
  throw new RangeError('--minutes takes a number up to 1440, --seed a whole number')
}

const kek = await deriveKey('0123456789', Buffer.alloc(16, 7), 16)
const endMs = performance.now() + minutes * 60_000
let seed = firstSeed
let datagrams = 0
let reportMs = 0
for (; performance.now() < endMs; seed++) {
  const outcome = fuzz(seed, STEPS, kek)
  datagrams += outcome.datagrams
  if (outcome.violations.length > 0) {
    print(`seed ${seed}, ${STEPS} steps:\n  ${outcome.violations.slice(0, 10).join('\n  ')}`)
    process.exit(1)
  }
  if (performance.now() >= reportMs) {
    reportMs = performance.now() + 10_000
    // Exact where node runs with --expose-gc.
    globalThis.gc?.()
    print(`seed ${seed}: ${datagrams} datagrams, heap ${heapMb()} MB`)
  }
}
globalThis.gc?.()
print(
  `seeds ${firstSeed} to ${seed - 1}: ${datagrams} datagrams, heap ${heapMb()} MB, no violation`,
)

function heapMb(): string {
  return (process.memoryUsage().heapUsed / 1e6).toFixed(1)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
