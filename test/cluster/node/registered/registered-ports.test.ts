import t from 'tap'
import { RegisteredPorts } from '../../../../src/cluster/node/registered/registered-ports.ts'
import type { RegisteredPort } from '../../../../src/cluster/registry/registered.ts'
import { MillraceError } from '../../../../src/errors.ts'

const STUDIO: RegisteredPort = { port: 5000, streamId: 'studio', options: {} }

/** Ports 5000 to 5009, at a time of the test; `read` is what the registry answers. */
function create(
  read: () => Promise<RegisteredPort[]>,
  findOwned = (_port: number): string | undefined => undefined,
) {
  const state = { nowUs: 0, reads: 0 }
  const ports = new RegisteredPorts({
    registry: {
      listPorts: () => {
        state.reads++
        return read()
      },
    },
    findOwned,
    range: { first: 5000, last: 5009 },
    clock: { nowUs: () => state.nowUs },
  })
  const owners = async (...asked: number[]) =>
    (await Promise.all(asked.map((port) => ports.find(port)))).map((found) => found?.streamId)
  return { ports, state, owners }
}

t.test('all callers of a second cost the registry one read', async (t) => {
  const { ports, state, owners } = create(async () => [STUDIO])
  t.strictSame(await owners(5000, 5000, 5001), ['studio', 'studio', undefined])
  state.nowUs = 999_999
  t.strictSame(await owners(5000, 5009), ['studio', undefined])
  t.equal(state.reads, 1)
  state.nowUs = 1_000_000
  await owners(5001, 5001)
  t.equal(state.reads, 2)
  ports.invalidate()
  await owners(5000)
  t.equal(state.reads, 3, 'this node has changed it')
})

t.test('one read is under way at a time', async (t) => {
  const answers: ((ports: RegisteredPort[]) => void)[] = []
  const { state, owners } = create(() => new Promise((resolve) => answers.push(resolve)))
  const first = owners(5000)
  state.nowUs = 5_000_000
  const second = owners(5000)
  t.equal(state.reads, 1)
  answers[0]!([STUDIO])
  t.strictSame([await first, await second], [['studio'], ['studio']])
})

t.test('a caller that comes after a change does not get what was read before it', async (t) => {
  const answers: ((ports: RegisteredPort[]) => void)[] = []
  const { ports, state, owners } = create(() => new Promise((resolve) => answers.push(resolve)))
  const before = owners(5000)
  ports.invalidate()
  const after = owners(5000)
  t.equal(state.reads, 2)
  answers[1]!([STUDIO])
  t.strictSame(await after, ['studio'])
  answers[0]!([])
  await before
  t.strictSame(await owners(5000), ['studio'], 'the older answer came later')
})

t.test('while the registry is away, a stream of this node has its port', async (t) => {
  let isAway = true
  const read = async () => {
    if (isAway) throw new MillraceError('REGISTRY_UNAVAILABLE')
    return []
  }
  const { state, owners } = create(read, (port) => (port === 5000 ? 'studio' : undefined))
  t.strictSame(await owners(5000), ['studio'], 'even if it has never answered')
  await t.rejects(owners(5001), { code: 'REGISTRY_UNAVAILABLE' })
  isAway = false
  state.nowUs = 1_000_000
  t.strictSame(await owners(5000), [undefined], 'the registry knows better')
  isAway = true
  state.nowUs = 2_000_000
  t.strictSame(await owners(5000, 5001), ['studio', undefined])
})

t.test('a port out of the range costs no read', async (t) => {
  const { state, owners } = create(async () => [{ ...STUDIO, port: 5010 }])
  t.strictSame(await owners(4999, 5010), [undefined, undefined])
  t.equal(state.reads, 0)
})

t.test('what the registry had is believed while it is away', async (t) => {
  let isAway = true
  const { state, owners } = create(async () => {
    if (isAway) throw new MillraceError('REGISTRY_UNAVAILABLE')
    return [STUDIO]
  })
  await t.rejects(owners(5000), { code: 'REGISTRY_UNAVAILABLE' })
  await t.rejects(owners(5000), { code: 'REGISTRY_UNAVAILABLE' })
  t.equal(state.reads, 1, 'a registry that is away is asked no more often')
  isAway = false
  state.nowUs = 1_000_000
  t.strictSame(await owners(5000), ['studio'])
  isAway = true
  state.nowUs = 2_000_000
  t.strictSame(await owners(5000), ['studio'])
})
