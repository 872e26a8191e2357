/**
 * Ingest nodes over real sockets, whose streams, fences and failures the test decides, and their registry in memory.
 *
 * @module
 */
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { systemClock } from '../../../src/timing/clock.ts'
import { NodeCalls } from '../../../src/auth/node-calls.ts'
import type { Owner, OwnerLookup } from '../../../src/cluster/edge/stream-origin.ts'
import { freePort } from '../../support/free-port.ts'

export const nodeCalls = new NodeCalls(() => ['c'.repeat(32)], systemClock)

/** A node that answers for one stream, as long as it has a fence. */
export class FakeNode {
  /** Fence in replies; undefined: another node owns the stream, so the answer is 421. */
  fence: number | undefined
  /** Number of the version that the playlist has. */
  version = 1
  /** Whether the node owns the stream and has no file of it. */
  isEmpty = false
  /** Whether requests are taken and never answered. */
  isSilent = false
  /** What becomes of requests for the parts that the playlist names, one in each version; undefined: it names none. */
  parts: 'served' | 'refused' | 'silent' | undefined
  /** Requests without a valid signature. */
  unsigned = 0
  /** Paths of requests. */
  readonly asked: string[] = []
  url = ''
  readonly #name: string
  readonly #waiting: (() => void)[] = []
  #server: Server | undefined

  constructor(name: string) {
    this.#name = name
  }

  /** @param port  default: one that no other process takes when the node dies */
  async listen(port?: number): Promise<void> {
    const own = port ?? (await freePort())
    this.#server = createServer((request, reply) => {
      const path = request.url ?? ''
      this.asked.push(path)
      const signature = String(request.headers['millrace-call'])
      if (nodeCalls.verify({ method: 'GET', path }, signature) === undefined) this.unsigned++
      const isPart = path.endsWith('-part.ts')
      if (this.isSilent || (isPart && this.parts === 'silent')) return
      const isCurrent = request.headers['if-none-match'] === `"${this.#etag}"`
      const isOwner = this.fence !== undefined
      if (!isOwner || !isCurrent || !path.endsWith('.m3u8')) this.#answer(path, reply)
      else this.#waiting.push(() => this.#answer(path, reply))
    })
    await once(this.#server.listen(own, '127.0.0.1'), 'listening')
    this.url = `http://127.0.0.1:${own}`
  }

  get #etag(): string {
    return `${this.#name}-${this.version}`
  }

  /** Publishes the next version of the playlist, for all who wait. */
  publish(): void {
    this.version++
    for (const answer of this.#waiting.splice(0)) answer()
  }

  /** Loses the stream; those who wait hear of it. */
  lose(): void {
    this.fence = undefined
    for (const answer of this.#waiting.splice(0)) answer()
  }

  /** Ends at once: further connections are refused. */
  async die(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server?.close(() => resolve()))
    this.#server?.closeAllConnections()
    await closed
  }

  /** A part leaves with its owner. */
  #hasPart(path: string): boolean {
    return this.parts !== 'refused' && path.includes(`/${this.#name}-`)
  }

  #answer(path: string, reply: ServerResponse): void {
    if (this.fence === undefined) {
      const code = 'NOT_OWNER'
      reply.writeHead(421, { 'content-type': 'application/json' })
      reply.end(
        JSON.stringify({ success: false, code, error: 'this node does not own the stream' }),
      )
      return
    }
    const headers = { 'millrace-fence': String(this.fence), 'cache-control': 'max-age=3600' }
    if (this.isEmpty || (path.endsWith('-part.ts') && !this.#hasPart(path))) {
      reply.writeHead(404, headers)
      reply.end('{"success":false,"code":"FILE_NOT_FOUND","error":"no such file"}')
      return
    }
    if (!path.endsWith('.m3u8')) {
      reply.writeHead(200, { ...headers, 'content-type': 'video/mp2t', etag: `"${path}"` })
      reply.end(`${path} of ${this.#name}`)
      return
    }
    const type = 'application/vnd.apple.mpegurl'
    reply.writeHead(200, { ...headers, 'content-type': type, etag: `"${this.#etag}"` })
    const part = this.parts && `#EXT-X-PART:DURATION=1,URI="${this.#etag}-part.ts"\n`
    // A part that hangs holds its version up for a target duration of real time: an hour, longer than any test.
    const head = `#EXTM3U\n#EXT-X-TARGETDURATION:${this.parts ? 3600 : 1}\n`
    reply.end(`${head}#EXTINF:1,\na.ts\n${part ?? ''}#${this.#etag}\n`)
  }
}

/** Starts nodes; they end with the test. */
export async function startNodes(t: Test, names: readonly string[]): Promise<FakeNode[]> {
  const nodes = names.map((name) => new FakeNode(name))
  await Promise.all(nodes.map((node) => node.listen()))
  t.teardown(() => Promise.all(nodes.map((node) => node.die())))
  return nodes
}

/** Registry in the memory of the test: one owner for all streams. */
export class MemoryOwners implements OwnerLookup {
  owner: Owner | undefined
  /** Answer of lookups that may come from a cache; default: `owner`. */
  cached: Owner | undefined
  isAway = false
  /** Whether each lookup was fresh, in order. */
  readonly lookups: boolean[] = []

  async find(_streamId: string, { fresh = false }: { readonly fresh?: boolean } = {}) {
    this.lookups.push(fresh)
    if (this.isAway) throw new Error('the registry is away')
    return fresh ? this.owner : (this.cached ?? this.owner)
  }

  /** Makes a node the owner. */
  give(node: FakeNode, fence: number): void {
    node.fence = fence
    this.owner = { url: node.url, fence }
  }
}
