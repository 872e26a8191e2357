import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { NodeCalls } from '../../../src/auth/node-calls.ts'
import { NodeClient } from '../../../src/cluster/edge/node-client.ts'
import { callNode } from '../../../src/cluster/node/call-node.ts'
import { systemClock } from '../../../src/timing/clock.ts'

const MIB = 1024 * 1024

/** @returns calls a node that answers so */
async function serve(t: Test, answer: (reply: ServerResponse) => void) {
  const node = createServer((_request, reply) => answer(reply))
  t.teardown(() => node.close())
  await once(node.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
  const calls = new NodeCalls(() => ['c'.repeat(32)], systemClock)
  const client = new NodeClient({ calls })
  t.teardown(() => client.close())
  return () => callNode(client, { url, call: 'records', body: {}, timeoutMs: 60_000 })
}

t.test('takes a page of records of some megabytes', async (t) => {
  const page = { records: ['x'.repeat(4 * MIB)] }
  const call = await serve(t, (reply) => void reply.end(JSON.stringify(page)))
  t.strictSame(await call(), page)
})

t.test('reads no more than 32 MiB, whatever the head of the response says', async (t) => {
  let sentBytes = 0
  const chunk = Buffer.alloc(MIB, ' ')
  const send = (reply: ServerResponse): void => {
    if (reply.destroyed || sentBytes === 128 * MIB) return void reply.end()
    sentBytes += chunk.length
    reply.write(chunk, () => send(reply))
  }
  const call = await serve(t, send)
  await t.rejects(call(), /too many bytes/)
  t.ok(sentBytes < 64 * MIB, `${sentBytes} bytes`)
})

t.test('rejects with the refusal of the node, or with its status', async (t) => {
  const refused = await serve(t, (reply) => {
    reply.writeHead(503).end(JSON.stringify({ code: 'SHUTTING_DOWN', error: 'not here' }))
  })
  await t.rejects(refused(), { code: 'SHUTTING_DOWN', message: 'not here' })
  const failed = await serve(t, (reply) => void reply.writeHead(500).end('{}'))
  await t.rejects(failed(), /status 500/)
})
