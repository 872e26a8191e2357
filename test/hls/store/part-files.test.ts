import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { PartFiles } from '../../../src/hls/store/part-files.ts'
import { createStreamFile, type StreamFile } from '../../../src/hls/store/stream-file.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function file(version: string): StreamFile {
  const chunks = [Buffer.from(version)]
  return createStreamFile('part', { chunks, version, targetDurationSec: 2 })
}

function setUp() {
  const cached = new Map<string, StreamFile>()
  return { cached, parts: new PartFiles((uri) => cached.get(uri)) }
}

t.test('a part is there while its segment is open or cached', async (t) => {
  const { cached, parts } = setUp()
  const [first, second, whole] = [file('p0'), file('p1'), file('0')]
  parts.add('p0.ts', first, '0.ts')
  t.equal(parts.get('p0.ts'), first)
  t.equal(parts.get('p1.ts'), undefined)
  parts.add('p1.ts', second, '0.ts')
  cached.set('0.ts', whole)
  parts.complete('0.ts', whole)
  t.same([parts.get('p0.ts'), parts.get('p1.ts')], [first, second])
  cached.delete('0.ts')
  t.equal(parts.get('p0.ts'), undefined)
  t.equal(parts.get('p1.ts'), undefined)
})

t.test('the parts of a refused segment are gone', async (t) => {
  const { parts } = setUp()
  parts.add('p0.ts', file('p0'), '0.ts')
  parts.complete('0.ts', undefined)
  t.equal(parts.get('p0.ts'), undefined)
  parts.complete('1.ts', file('1'))
  t.equal(parts.get('1.ts'), undefined, 'a segment without parts')
})

t.test('discards all parts', async (t) => {
  const { cached, parts } = setUp()
  const whole = file('0')
  parts.add('p0.ts', file('p0'), '0.ts')
  cached.set('0.ts', whole)
  parts.complete('0.ts', whole)
  parts.add('p1.ts', file('p1'), '1.ts')
  parts.discard()
  t.same([parts.get('p0.ts'), parts.get('p1.ts')], [undefined, undefined])
})

t.test('does not keep the memory of released segments in use', async (t) => {
  const { cached, parts } = setUp()
  const released: WeakRef<Buffer>[] = []
  for (let msn = 0; msn < 4; msn++) {
    const whole = file(`${msn}`)
    const part = file(`p${msn}`)
    if (msn < 3) released.push(new WeakRef(part.chunks[0]!))
    parts.add(`p${msn}.ts`, part, `${msn}.ts`)
    cached.set(`${msn}.ts`, whole)
    parts.complete(`${msn}.ts`, whole)
    cached.delete(`${msn - 1}.ts`)
  }
  t.ok(parts.get('p3.ts'))
  // A WeakRef holds its target until the end of the turn in which it was made.
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  t.same(
    released.map((each) => each.deref()),
    [undefined, undefined, undefined],
  )
})
