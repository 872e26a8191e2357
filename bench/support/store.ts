/**
 * Store of an archive as far as a bench needs one.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Gives back what it was sent, confirms it and keeps nothing, or never answers. */
export type StoreKind = 'keeping' | 'forgetful' | 'away'

export interface Store {
  /** Settings of Millrace that archives to it. */
  readonly archive: Readonly<Record<keyof typeof ENVIRONMENT, string>>
  close(): void
}

/** Environment variables of the settings. */
const ENVIRONMENT = {
  url: 'ARCHIVE_URL',
  endpoint: 'ARCHIVE_ENDPOINT',
  accessKeyId: 'AWS_ACCESS_KEY_ID',
  secretAccessKey: 'AWS_SECRET_ACCESS_KEY',
}

export async function startStore(kind: StoreKind): Promise<Store> {
  const objects = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      if (kind === 'away') return
      const path = request.url ?? ''
      if (request.method === 'PUT') {
        const object = Buffer.concat(pieces)
        if (kind === 'keeping') objects.set(path, object)
        response.setHeader('ETag', `"${createHash('md5').update(object).digest('hex')}"`)
        response.end()
        return
      }
      const object = objects.get(path)
      response.statusCode = object === undefined ? 404 : 200
      response.end(object)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    archive: {
      url: 's3://bench/live',
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      accessKeyId: 'bench',
      secretAccessKey: 'bench-bench-bench-bench-bench-bench',
    },
    close: () => server.close().closeAllConnections(),
  }
}

/** Environment of a program that archives to a store. */
export function archiveEnvironment({ archive }: Store): Record<string, string> {
  const names = Object.entries(ENVIRONMENT) as [keyof typeof ENVIRONMENT, string][]
  return Object.fromEntries(names.map(([setting, variable]) => [variable, archive[setting]]))
}
