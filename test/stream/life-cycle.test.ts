import t from 'tap'
import { LifeCycle } from '../../src/stream/life-cycle.ts'

function setUp() {
  let nowUs = 5_000_000
  const clock = { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 }
  const life = new LifeCycle({ clock, lingerSec: 60, reconnectGraceSec: 120 })
  return { life, clock, pass: (sec: number) => void (nowUs += sec * 1e6) }
}

t.test('a stream without an encoder is due when its last key expires', async (t) => {
  const { life, clock, pass } = setUp()
  t.equal(life.state, 'READY')
  life.renewKey(clock.wallMs() + 10_000)
  life.renewKey(clock.wallMs() + 5000)
  t.equal(life.stopsAtMs, clock.wallMs() + 10_000)
  pass(9.9)
  t.equal(life.due, undefined)
  pass(0.1)
  t.equal(life.due, 'key-expired')
  life.stream()
  t.equal(life.due, undefined, 'an encoder needs no key that lasts')
})

t.test('an interrupted stream is due after the grace, which a new key renews', async (t) => {
  const { life, clock, pass } = setUp()
  life.stream()
  life.goLive()
  t.equal(life.liveSinceMs, clock.wallMs())
  t.equal(life.stopsAtMs, undefined)
  pass(30)
  const interruptedMs = clock.wallMs()
  life.interrupt('kicked')
  t.equal(life.liveSinceMs, undefined)
  t.strictSame(life.interruption, { reason: 'kicked', atMs: interruptedMs })
  t.equal(life.stopsAtMs, interruptedMs + 120_000)
  pass(119)
  life.renewKey(clock.wallMs() + 7_200_000)
  t.match(life, { stateSinceMs: interruptedMs, stopsAtMs: interruptedMs + 239_000 })
  pass(119)
  t.equal(life.due, undefined)
  pass(1)
  t.equal(life.due, 'grace-expired')
  life.stream()
  t.match(life, { interruption: undefined, stopsAtMs: undefined })
})

t.test('an encoder that has been away for 10 s is lost, until one comes back', async (t) => {
  const { life, pass } = setUp()
  pass(60)
  t.equal(life.lost, false, 'a stream that waits for its first encoder')
  life.stream()
  pass(60)
  life.interrupt('timeout')
  pass(9.9)
  t.equal(life.lost, false)
  pass(0.1)
  t.equal(life.lost, true)
  life.stream()
  t.equal(life.lost, false)
})

t.test('a stopped stream is never due, and over after the linger', async (t) => {
  const { life, pass } = setUp()
  life.stream()
  life.goLive()
  life.leaveLive()
  t.match(life, { state: 'STREAMING', liveSinceMs: undefined })
  life.stop()
  pass(59.9)
  t.match(life, { state: 'STOPPED', over: false, stopsAtMs: undefined })
  pass(0.1)
  t.match(life, { over: true, due: undefined })
})
