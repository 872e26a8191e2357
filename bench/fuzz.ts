/**
 * `npm run fuzz -- --minutes N [--seed S] [--only srt | media]`: runs the fuzzers of test/srt/fuzz.ts and
 * test/stream/fuzz.ts, one seed after the other. Ends with an error at the first violation, with the seed that reproduces
 * it, or when memory has grown at the end.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { deriveKey } from '../src/srt/crypto/key-encryption.ts'
import { fuzz as fuzzSrt } from '../test/srt/fuzz.ts'
import { fuzz as fuzzMedia } from '../test/stream/fuzz.ts'

const PARTS = ['srt', 'media'] as const
/** Cases of one seed, which take a second or less. */
const STEPS = { srt: 20_000, media: 2000 } as const
const REPORT_MS = 10_000
/** Warm-up until all code is compiled; memory must not grow afterwards. */
const WARM_UP_SEEDS = 100
/** Allowance for late compilation and measurement noise. */
const MAX_GROWTH_MB = 2

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    only: { type: 'string' },
  },
})
const minutes = Number(values.minutes)
const firstSeed = Number(values.seed)
if (!(minutes > 0 && minutes <= 1440) || !Number.isSafeInteger(firstSeed)) {
  throw new RangeError('--minutes takes a number up to 1440, --seed a whole number')
}

const parts = PARTS.filter((part) => part === (values.only ?? part))
if (parts.length === 0) throw new RangeError(`--only takes one of ${PARTS.join(', ')}`)

const kek = await deriveKey('0123456789', Buffer.alloc(16, 7), 16)
const endMs = performance.now() + minutes * 60_000
let seed = firstSeed
let payloads = 0
run(WARM_UP_SEEDS, Infinity)
const beforeMb = memoryMb()
print(`seed ${seed}: ${payloads} payloads, ${beforeMb.toFixed(1)} MB before`)
while (performance.now() < endMs) {
  run(Infinity, Math.min(endMs, performance.now() + REPORT_MS))
  print(`seed ${seed}: ${payloads} payloads, ${memoryMb().toFixed(1)} MB`)
}
const growthMb = memoryMb() - beforeMb
const grown = growthMb > MAX_GROWTH_MB
print(
  `seeds ${firstSeed} to ${seed - 1}: ${payloads} payloads, no violation, ` +
    `memory ${beforeMb.toFixed(1)} MB before, ${(beforeMb + growthMb).toFixed(1)} MB after` +
    (grown ? `: grown by more than ${MAX_GROWTH_MB} MB` : ''),
)
process.exit(grown ? 1 : 0)

/** Runs seeds until their number or the time is reached. */
function run(seeds: number, untilMs: number): void {
  for (; seeds > 0 && performance.now() < untilMs; seeds--, seed++) parts.forEach(runPart)
}

function runPart(part: (typeof PARTS)[number]): void {
  const outcome = part === 'srt' ? fuzzSrt(seed, STEPS.srt, kek) : fuzzMedia(seed, STEPS.media)
  payloads += 'datagrams' in outcome ? outcome.datagrams : outcome.payloads
  if (outcome.violations.length === 0) return
  const violations = outcome.violations.slice(0, 10).join('\n  ')
  print(`${part}, seed ${seed}, ${STEPS[part]} steps:\n  ${violations}`)
  process.exit(1)
}

/** @returns bytes of reachable heap and buffers */
function memoryMb(): number {
  if (globalThis.gc === undefined) throw new Error('run node with --expose-gc')
  // The second collection frees the buffers that the first one finalizes.
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
