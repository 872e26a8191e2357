/**
 * Faults on the way from a real service to a check: each is found by its rule, and no other rule is broken.
 */
import t, { type Test } from 'tap'
import type { CheckResult } from '../../src/check/check-stream.ts'
import type { Tamper } from '../check/fault-proxy.ts'
import { FAULTS, type Fault } from './fault-table.ts'
import { startFaultyStream, type FaultyStream } from './faulty-stream.ts'

/** Checks at a time. */
const GROUP = 8

/** Rules on delays that a busy machine causes by itself: it runs publisher, service, proxies and checks in one process. */
const TIMED = new Set([
  ...['PARTS_STALE', 'PLAYLIST_STALE', 'MEDIA_TRICKLED'],
  ...['BLOCKING_LATE', 'BLOCKING_HELD_TOO_LONG', 'OLD_SEQUENCE_REFUSED'],
])

const untouched: Tamper = (request, origin) => origin(request)

t.test('an undisturbed stream breaks no rule, directly or through a proxy', async (t) => {
  const stream = await startFaultyStream(t)
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      stream.check({
        seconds: 10,
        playlist: index < 6 ? 'master.m3u8' : 'ts.m3u8',
        ...(index % 2 === 0 && { tamper: untouched }),
      }),
    ),
  )
  results.forEach((result, index) => {
    t.same(describe(result), [])
    t.equal(result.summary.renditions.length, index < 6 ? 3 : 2)
  })
})

t.test('each fault is found by its rule, and none is invented', async (t) => {
  t.ok(FAULTS.length >= 30)
  const steady = await startFaultyStream(t)
  const reconnecting = await startFaultyStream(t, { reconnects: true })
  const streamOf = (fault: Fault) => (fault.reconnects === true ? reconnecting : steady)
  const waiting = [...FAULTS]
  const starved: Fault[] = []
  const work = async () => {
    for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift()) {
      const result = await streamOf(fault).check({ seconds: 8, ...fault, tamper: fault.tamper() })
      if (isFound(result, fault)) judge(t, result, fault)
      else starved.push(fault)
    }
  }
  await Promise.all(Array.from({ length: GROUP }, work))
  // Checks that share a slow machine with many others load too little of the media.
  const workAgain = async () => {
    for (let fault = starved.shift(); fault !== undefined; fault = starved.shift()) {
      judge(t, await repeat(streamOf(fault), fault), fault)
    }
  }
  await Promise.all([workAgain(), workAgain()])
})

async function repeat(stream: FaultyStream, fault: Fault): Promise<CheckResult> {
  const check = () => stream.check({ ...fault, seconds: 30, tamper: fault.tamper() })
  const result = await check()
  return isFound(result, fault) ? result : check()
}

function isFound({ findings }: CheckResult, { rule }: Fault): boolean {
  return findings.some((each) => each.rule.id === rule)
}

function judge(t: Test, result: CheckResult, fault: Fault): void {
  const { title, rule, follows = [] } = fault
  t.ok(isFound(result, fault), `${rule} finds that ${title}`)
  const rest = describe(result).filter(({ id }) => id !== rule && !follows.includes(id))
  t.same(rest, [], `nothing else is found where ${title}`)
}

/** Findings, without those that a slow machine explains. */
function describe({ findings }: CheckResult) {
  return findings
    .filter(({ rule }) => !TIMED.has(rule.id))
    .map(({ rule, count, evidence }) => ({ id: rule.id, count, evidence }))
}
