/**
 * HTTP server on loopback for tests: a handler by path, and a log of its requests.
 *
 * @module
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Test {
  teardown(close: () => unknown): unknown
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

export interface Origin {
  /** `http://127.0.0.1:port` */
  readonly url: string
  readonly requests: readonly IncomingMessage[]
  /** Most requests that were open at once. */
  readonly maxOpen: number
}

export async function startOrigin(t: Test, handle: Handler): Promise<Origin> {
  const requests: IncomingMessage[] = []
  let [open, maxOpen] = [0, 0]
  const server = createServer((request, response) => {
    requests.push(request)
    maxOpen = Math.max(maxOpen, ++open)
    response.once('close', () => open--)
    handle(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    get maxOpen() {
      return maxOpen
    },
  }
}
