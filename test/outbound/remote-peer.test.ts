import t from 'tap'
import { MillraceError } from '../../src/errors.ts'
import { RemotePeer } from '../../src/outbound/remote-peer.ts'
import type { CloseReason } from '../../src/srt/types.ts'

/** A peer, a clock that the test sets, and what becomes of its calls. */
class Scene {
  nowUs = 0
  draw = 0
  readonly failures: object[] = []
  readonly signals: AbortSignal[] = []
  closes = 0
  /** Settles the latest call. */
  connect!: () => (reason: CloseReason) => void
  refuse!: (error: unknown) => void
  readonly peer = new RemotePeer({
    target: { host: 'camera.example', port: 9000 },
    clock: { nowUs: () => this.nowUs, wallMs: () => this.nowUs / 1000 },
    random: () => this.draw,
    onFailure: (failure) => this.failures.push(failure),
    call: (signal) => {
      this.signals.push(signal)
      return new Promise((resolve, reject) => {
        this.refuse = reject
        this.connect = () => {
          let end!: (reason: CloseReason) => void
          const closed = new Promise<CloseReason>((settle) => (end = settle))
          resolve({
            closed,
            close: async () => {
              this.closes++
              end('closed')
            },
          })
          return end
        }
      })
    },
  })

  get state() {
    return this.peer.report.state
  }

  /** Time to the next call, in seconds. */
  get waitSec() {
    return (this.peer.report.nextCallAt!.getTime() - this.nowUs / 1000) / 1000
  }

  pass(sec: number) {
    this.nowUs += sec * 1e6
    this.peer.tick()
  }

  async fail(message = 'no SRT peer answered') {
    this.refuse(new MillraceError('SRT_REJECTED', { message }))
    await settled()
  }

  async lose(end: (reason: CloseReason) => void, reason: CloseReason) {
    end(reason)
    await settled()
  }
}

const settled = () => new Promise(setImmediate)

t.test('calls at once, then after 1 to 30 s: later on average with each failure', async (t) => {
  for (const [draw, waits] of [
    [0, [1, 1, 1, 1, 1, 1, 1]],
    [0.5, [1.5, 2.5, 4.5, 8.5, 15.5, 15.5, 15.5]],
    [1, [2, 4, 8, 16, 30, 30, 30]],
  ] as const) {
    const scene = new Scene()
    scene.draw = draw
    scene.peer.tick()
    for (const sec of waits) {
      t.equal(scene.state, 'CALLING')
      await scene.fail()
      t.equal(scene.state, 'WAITING')
      t.equal(scene.waitSec, sec, `wait ${sec} of ${draw}`)
      scene.pass(sec - 0.001)
      t.equal(scene.state, 'WAITING', 'not earlier')
      scene.pass(0.001)
    }
    t.equal(scene.signals.length, waits.length + 1)
    t.equal(scene.failures.length, waits.length)
    t.equal(scene.peer.report.calls, waits.length + 1)
  }
})

t.test('one call at a time, none while the peer is connected', async (t) => {
  const scene = new Scene()
  for (let i = 0; i < 10; i++) scene.pass(1)
  t.equal(scene.signals.length, 1)
  scene.connect()
  await settled()
  t.match(scene.peer.report, { state: 'CONNECTED', calls: 1, error: undefined })
  for (let i = 0; i < 100; i++) scene.pass(1)
  t.equal(scene.signals.length, 1)
})

t.test('says why it waits, and how a connection ended', async (t) => {
  const scene = new Scene()
  scene.peer.tick()
  await scene.fail('the SRT peer refused the connection')
  t.match(scene.peer.report, {
    remote: 'camera.example:9000',
    state: 'WAITING',
    since: new Date(0),
    error: 'the SRT peer refused the connection',
  })
  scene.pass(1)
  t.equal(scene.peer.report.error, 'the SRT peer refused the connection', 'until it is connected')
  const end = scene.connect()
  await settled()
  t.equal(scene.peer.report.error, undefined)
  scene.pass(3)
  await scene.lose(end, 'timeout')
  t.match(scene.peer.report, { state: 'WAITING', error: /silent/, since: new Date(4000) })
  const failure = { code: 'SRT_REJECTED', remote: 'camera.example:9000', reason: 'refused' }
  t.strictSame(scene.failures, [failure], 'an end is no failure')
})

t.test('a connection of 10 s ends the failures in a row, a shorter one does not', async (t) => {
  const scene = new Scene()
  scene.draw = 1
  scene.peer.tick()
  for (const [lastedSec, waitSec] of [
    [1, 2],
    [9, 4],
    [0, 8],
    [10, 2],
    [3600, 2],
  ] as const) {
    const end = scene.connect()
    await settled()
    scene.pass(lastedSec)
    await scene.lose(end, 'shutdown')
    t.equal(scene.waitSec, waitSec, `after ${lastedSec} s`)
    scene.pass(waitSec)
  }
})

t.test('close ends what there is, and no call follows', async (t) => {
  const connected = new Scene()
  connected.peer.tick()
  connected.connect()
  await settled()
  await connected.peer.close()
  t.equal(connected.closes, 1)
  connected.pass(60)
  t.equal(connected.signals.length, 1)

  const calling = new Scene()
  calling.peer.tick()
  await calling.peer.close()
  t.equal(calling.signals[0]!.aborted, true)
  await calling.fail('aborted')
  t.strictSame(calling.failures, [], 'nothing to tell of')
  calling.pass(60)
  t.equal(calling.signals.length, 1)

  const late = new Scene()
  late.peer.tick()
  await late.peer.close()
  late.connect()
  await settled()
  t.equal(late.closes, 1, 'a connection that comes after it is closed')
})
