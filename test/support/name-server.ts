/**
 * DNS server on the loopback that answers for some names and ignores others.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'

interface Test {
  teardown(close: () => unknown): unknown
}

export interface NameServer {
  /** Queried names, repetitions included. */
  readonly queries: readonly string[]
  /** Resolver that queries only this server. */
  createResolver(options?: { timeout: number; tries: number }): Resolver
}

/** Answer to a query: IPv4 addresses, `unknown` (NXDOMAIN), or none. */
type Answer = readonly string[] | 'unknown' | undefined

/** @param answer  called for each query, so that a name can change its addresses */
export async function startNameServer(
  t: Test,
  answer: (name: string) => Answer,
): Promise<NameServer> {
  const queries: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (question, { port, address }) => {
    const { name, type, endBytes } = parseQuestion(question)
    queries.push(name)
    const known = answer(name)
    if (known !== undefined) socket.send(reply(question, endBytes, type, known), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  t.teardown(() => socket.close())
  return {
    queries,
    createResolver: (options = { timeout: 100, tries: 2 }) => {
      const resolver = new Resolver(options)
      resolver.setServers([`127.0.0.1:${port}`])
      return resolver
    },
  }
}

const TYPE_A = 1

/** Question section (RFC 1035 4.1.2). */
function parseQuestion(question: Buffer) {
  const labels: string[] = []
  let offset = 12
  for (let length = question[offset]!; length > 0; length = question[offset]!) {
    labels.push(question.toString('latin1', offset + 1, offset + 1 + length))
    offset += length + 1
  }
  const type = question.readUInt16BE(offset + 1)
  return { name: labels.join('.').toLowerCase(), type, endBytes: offset + 5 }
}

/** Response header and records (RFC 1035 4.1.1, 4.1.3). */
function reply(
  question: Buffer,
  endBytes: number,
  type: number,
  known: readonly string[] | 'unknown',
) {
  const records = known === 'unknown' || type !== TYPE_A ? [] : known
  const head = Buffer.from(question.subarray(0, endBytes))
  head.writeUInt16BE(known === 'unknown' ? 0x8183 : 0x8180, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  head.writeUInt32BE(0, 8)
  const answers = records.map((address) =>
    // The name of the question, type A, class IN, valid for 0 s, four bytes.
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  )
  return Buffer.concat([head, ...answers])
}
