import t from 'tap'
import { UploadQueue, type StoreTask } from '../../src/archive/upload-queue.ts'
import { createRandom } from '../support/random.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

const MAX_BYTES = 1000

function setUp() {
  const errors: unknown[] = []
  const pauses: (() => void)[] = []
  const pausesMs: number[] = []
  const tasks = new UploadQueue<object>({
    maxBytes: MAX_BYTES,
    random: () => 1,
    pause: (ms) => {
      pausesMs.push(ms)
      return new Promise((resolve) => pauses.push(resolve))
    },
    onError: (error) => errors.push(error),
    onSuccess: () => undefined,
  })
  const done: string[] = []
  const add = (owner: object, name: string, attempt: StoreTask['attempt'], sizeBytes = 1) =>
    tasks.add(owner, {
      chunks: [Buffer.alloc(sizeBytes)],
      attempt,
      onDone: (isStored) => done.push(`${name} ${isStored}`),
    })
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  }
  const resume = async () => {
    for (const resolve of pauses.splice(0)) resolve()
    await settle()
  }
  return { tasks, add, done, errors, pausesMs, settle, resume }
}

const fail = () => Promise.reject(new Error('no'))

t.test('tasks that always fail do not hold up those of other owners', async (t) => {
  const { add, done, settle } = setUp()
  for (let owner = 0; owner < 50; owner++)
    for (let task = 0; task < 5; task++) add({}, `bad ${owner}`, fail)
  await settle()
  add({}, 'good', async () => true)
  await settle()
  t.same(done, ['good true'])
})

t.test('an owner whose tasks fail makes few requests until they are due again', async (t) => {
  const { add, done, errors, settle, resume } = setUp()
  const owner = {}
  let isDown = true
  for (let task = 0; task < 40; task++)
    add(owner, 'it', async () => (isDown ? fail() : Promise.resolve(true)))
  await settle()
  t.ok(errors.length <= 15, `${errors.length} requests`)
  for (let round = 0; round < 10; round++) await resume()
  isDown = false
  await resume()
  t.equal(done.length, 40)
  t.ok(done.every((it) => it === 'it true'))
})

t.test(
  'a task pauses for a second after five failures, then twice as long each time',
  async (t) => {
    const { add, pausesMs, settle, resume } = setUp()
    add({}, 'refused', fail)
    await settle()
    for (let round = 0; round < 11; round++) {
      add({}, 'taken', async () => true)
      await resume()
    }
    const doubled = [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
    t.same(pausesMs, [1000, 1000, 1000, 1000, 1000, ...doubled])
  },
)

/** A queue in simulated time, with what the store has taken and refused, and the longest time until it took a file. */
function simulate() {
  const random = createRandom(1)
  const pauses = new Set<{ readonly untilMs: number; readonly resolve: () => void }>()
  let nowMs = 0
  const counts = { taken: 0, refused: 0, longestMs: 0 }
  const queue = new UploadQueue<object>({
    maxBytes: Infinity,
    random: () => random.next(),
    pause: (ms) => new Promise((resolve) => pauses.add({ untilMs: nowMs + ms, resolve })),
    onError: () => counts.refused++,
    onSuccess: () => counts.taken++,
  })
  return {
    ...{ random, counts },
    add(owner: object, isTaken: () => boolean) {
      const sinceMs = nowMs
      queue.add(owner, {
        chunks: [Buffer.alloc(1)],
        attempt: async () => isTaken() || fail(),
        onDone: () => (counts.longestMs = Math.max(counts.longestMs, nowMs - sinceMs)),
      })
    },
    async run(sec: number, step: (nowMs: number) => void) {
      for (; nowMs < sec * 1000; nowMs += 100) {
        for (const pause of pauses) {
          if (pause.untilMs > nowMs) continue
          pauses.delete(pause)
          pause.resolve()
        }
        step(nowMs)
        await new Promise(setImmediate)
      }
    },
  }
}

t.test('files that a store refuses for good are seldom sent while it takes others', async (t) => {
  const { add, counts, run } = simulate()
  for (let file = 0; file < 3; file++) add({}, () => false)
  await run(600, () => add({}, () => true))
  t.equal(counts.taken, 6000)
  t.ok(counts.refused < 75, `${counts.refused} attempts`)
})

t.test(
  'a store that takes 20 of 30 files a second gets fewer than 100 requests a second',
  async (t) => {
    const { add, counts, run } = simulate()
    const streams = Array.from({ length: 60 }, () => ({}))
    let files = 0
    let quota = 0
    await run(300, (nowMs) => {
      if (nowMs % 1000 === 0) quota = 20
      for (let file = 0; file < 3; file++)
        add(streams[files++ % 60]!, () => quota > 0 && quota-- > 0)
    })
    t.ok(counts.taken > 5900, `${counts.taken} taken`)
    const requests = counts.taken + counts.refused
    t.ok(requests < 30_000, `${requests} requests in 300 s`)
  },
)

t.test('a store that refuses one request in five has each file soon', async (t) => {
  const { add, counts, random, run } = simulate()
  const stream = {}
  await run(3600, (nowMs) => {
    if (nowMs % 500 === 0) add(stream, () => random.chance(0.8))
  })
  t.ok(counts.taken > 7190, `${counts.taken} taken`)
  t.ok(counts.longestMs < 10_000, `${counts.longestMs} ms`)
})

t.test('what is to be tried again is no error', async (t) => {
  const { add, done, errors, settle, resume } = setUp()
  let rounds = 0
  add({}, 'it', async () => (++rounds < 3 ? undefined : true))
  await settle()
  await resume()
  t.same(done, [])
  await resume()
  t.same([done, errors], [['it true'], []])
})

t.test(
  'what is looked for and not there yet does not hold up other tasks of its owner',
  async (t) => {
    const { add, done, settle } = setUp()
    const owner = {}
    for (let task = 0; task < 20; task++) add(owner, 'absent', async () => undefined)
    add(owner, 'there', async () => true)
    await settle()
    t.same(done, ['there true'])
  },
)

t.test('what is looked for again goes behind what was not asked for yet', async (t) => {
  const { add, done, settle, resume } = setUp()
  const owner = {}
  const answers: (() => void)[] = []
  const look = () => new Promise<undefined>((resolve) => answers.push(() => resolve(undefined)))
  for (let task = 0; task < 20; task++) add(owner, 'absent', look)
  add(owner, 'there', async () => true)
  // The store is so slow that the pauses are over before the first round is.
  for (let round = 0; round < 2; round++) {
    await settle()
    for (const answer of answers.splice(0)) {
      answer()
      await settle()
      await resume()
    }
  }
  t.same(done, ['there true'])
})

t.test('abandons what is queued and what pauses at once, each once', async (t) => {
  const { tasks, add, done, settle, resume } = setUp()
  const owner = {}
  for (let task = 0; task < 20; task++) add(owner, 'it', fail)
  await settle()
  tasks.abandon(owner)
  t.equal(done.length, 20)
  await resume()
  t.equal(done.length, 20)
  t.equal(tasks.sizeBytes, 0)
})

t.test('after `close` nothing is tried again, nor told as an error', async (t) => {
  const { tasks, add, done, errors, settle, resume } = setUp()
  let reject: (error: Error) => void = () => undefined
  add({}, 'it', () => new Promise((_, no) => (reject = no)))
  await settle()
  tasks.close()
  reject(new Error('closed'))
  await settle()
  t.equal(add({}, 'late', fail), false)
  await settle()
  await resume()
  t.same(done, ['it undefined'])
  t.same([tasks.sizeBytes, errors], [0, []])
})

/** Never ends by itself, as a request to a store that has stopped to answer. */
const hang = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('aborted'))),
  )

t.test(
  'an owner whose tasks hang in all memory gives way to others, its newest first',
  async (t) => {
    const { add, done, settle, tasks } = setUp()
    const early = {}
    for (let task = 0; task < 20; task++) add(early, `early ${task}`, hang, 50)
    t.equal(add(early, 'early 20', hang, 50), false)
    await settle()
    const late = {}
    for (let task = 0; task < 10; task++) t.equal(add(late, 'late', hang, 50), true)
    await settle()
    t.same(
      done,
      Array.from({ length: 10 }, (_, task) => `early ${19 - task} undefined`),
    )
    t.equal(add(late, 'late', hang, 50), false)
    t.same([tasks.sizeOf(early), tasks.sizeOf(late)], [500, 500])
  },
)

t.test('what the store has taken in spite of all is stored', async (t) => {
  const { add, done, settle } = setUp()
  let answer: (isStored: boolean) => void = () => undefined
  add({}, 'early', () => new Promise((resolve) => (answer = resolve)), MAX_BYTES)
  t.equal(add({}, 'late', hang, 1), true)
  t.same(done, [], 'its memory is needed until its attempt has ended')
  answer(true)
  await settle()
  t.same(done, ['early true'])
})

t.test('memory is shared as a simple model says, and each owner has its share', async (t) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + rounds(50, 5000); seed++) {
    const random = createRandom(seed)
    const { tasks, settle, resume } = setUp()
    /** Sizes of the tasks that each owner holds, by their number, the oldest first. */
    const model = Array.from({ length: 2 + random.below(4) }, () => new Map<number, number>())
    const held = (owner: Map<number, number>) => [...owner.values()].reduce((a, b) => a + b, 0)
    const total = () => model.reduce((sum, owner) => sum + held(owner), 0)
    const active = new Map<number, (isStored: boolean | undefined) => void>()
    const seen: unknown[] = []
    const expected: unknown[] = []
    for (let step = 0; step < 80; step++) {
      const [number, answer] = [...active][random.below(active.size)] ?? []
      if (number !== undefined && random.chance(0.3)) {
        const isStored = random.chance(0.6) ? true : undefined
        active.delete(number)
        answer?.(isStored)
        if (isStored) for (const owner of model) owner.delete(number)
        await settle()
        if (random.chance(0.5)) await resume()
      } else {
        const adder = model[random.below(model.length)]!
        const others = model.filter((it) => it !== adder && it.size > 0)
        const sizeBytes = 1 + random.below(random.chance(0.2) ? 600 : 60)
        const ownBytes = held(adder) + sizeBytes
        const isAdded = tasks.add(adder, {
          chunks: [Buffer.alloc(sizeBytes)],
          attempt: (signal) =>
            Promise.race([
              new Promise<boolean | undefined>((resolve) => active.set(step, resolve)),
              hang(signal),
            ]),
          onDone: () => active.delete(step),
        })
        seen.push(isAdded)
        const cutBytes = others.reduce((sum, it) => sum + Math.min(held(it), ownBytes), ownBytes)
        expected.push(cutBytes <= MAX_BYTES)
        if (ownBytes <= MAX_BYTES / (others.length + 1) && !isAdded) t.fail(`${seed}: its share`)
        if (isAdded) adder.set(step, sizeBytes)
        while (total() > MAX_BYTES) {
          const mostBytes = Math.max(...others.map(held))
          const fullest = others.filter((it) => held(it) === mostBytes)
          const victim = fullest.find((it) => tasks.sizeOf(it) < mostBytes) ?? fullest[0]!
          victim.delete([...victim.keys()].at(-1)!)
        }
        await settle()
      }
      seen.push(model.map((it) => tasks.sizeOf(it)))
      expected.push(model.map(held))
    }
    t.same(seen, expected, `seed ${seed}`)
  }
})

t.test('memory is counted in whole slabs, each once, however segments share them', async (t) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + rounds(50, 5000); seed++) {
    const random = createRandom(seed)
    const { tasks, settle } = setUp()
    const waiting = new Set<{ owner: object; chunks: Buffer[]; store: () => unknown }>()
    const seen: unknown[] = []
    const expected: unknown[] = []
    const streams = Array.from({ length: 3 }, () => ({ slab: Buffer.alloc(60), length: 0 }))
    /** The next segment of a stream, from where the one before has ended in its slab. */
    const cut = (stream: (typeof streams)[number], sizeBytes: number) => {
      const chunks: Buffer[] = []
      for (let rest = sizeBytes; rest > 0;) {
        if (stream.length === 60) Object.assign(stream, { slab: Buffer.alloc(60), length: 0 })
        const endAt = Math.min(60, stream.length + rest)
        chunks.push(stream.slab.subarray(stream.length, endAt))
        rest -= endAt - stream.length
        stream.length = endAt
      }
      return chunks
    }
    const keptBytes = (owner?: object) => {
      const kept = [...waiting].filter((it) => (owner ?? it.owner) === it.owner)
      return new Set(kept.flatMap(({ chunks }) => chunks.map(({ buffer }) => buffer))).size * 60
    }
    for (let step = 0; step < 100; step++) {
      const owner = streams[random.below(3)]!
      const chunks = cut(owner, 1 + random.below(150))
      const task = { owner, chunks, store: () => undefined as unknown }
      waiting.add(task)
      const isAdded = tasks.add(owner, {
        chunks,
        attempt: (signal) =>
          Promise.race([
            new Promise<boolean>((resolve) => (task.store = () => resolve(true))),
            hang(signal),
          ]),
        onDone: () => waiting.delete(task),
      })
      if (!isAdded) waiting.delete(task)
      if (random.chance(0.3)) [...waiting][random.below(waiting.size)]?.store()
      await settle()
      seen.push([tasks.sizeBytes, ...streams.map((it) => tasks.sizeOf(it))])
      expected.push([keptBytes(), ...streams.map((it) => keptBytes(it))])
      if (keptBytes() > MAX_BYTES) t.fail(`${seed}: ${keptBytes()} bytes`)
    }
    t.same(seen, expected, `seed ${seed}`)
  }
})
