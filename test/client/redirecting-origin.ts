import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** An origin with a page, which redirects each call to another one. @returns its URL, and what the other one received */
export async function redirectElsewhere(t: Test, status: number) {
  const received: string[] = []
  const listen = async (handler: RequestListener) => {
    const server = createServer(handler).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const other = await listen((request, response) => {
    received.push(`${request.method} ${request.url}`)
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-allow-headers', 'content-type,lt-signature')
    response.end('{"success":true,"data":{}}')
  })
  const url = await listen((request, response) => {
    if (request.method === 'POST') response.writeHead(status, { location: other + request.url })
    response.end('<html>')
  })
  return { url, received }
}

/** What the client says of a redirect. */
export const REDIRECTED = /redirects.* set `url` to the address that answers/
