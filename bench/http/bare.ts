/**
 * Bare servers on `node:http` and Fastify, with replies recorded from Millrace.
 *
 * @module
 */
import { startWorker } from '../support/worker.ts'
import type {
  BareKind,
  BareServerAnswers,
  BareServerTask,
  FileReplies,
  StoredReply,
} from './bare-server.ts'
import type { Contender, TlsFiles } from './contender.ts'
import { exchange, type Exchange } from './exchange.ts'
import type { FileName } from './scenarios.ts'

export type Recording = Pick<BareServerTask, 'files' | 'missing'>

/** Records the replies of a server to all requests of the bench. */
export async function recordReplies({ origin, paths }: Contender): Promise<Recording> {
  const { missing, ...present } = paths
  const files = await Promise.all(
    Object.values(present).map(async (path): Promise<[string, FileReplies]> => {
      const url = `${origin}${path}`
      const plain = await exchange(url)
      const etag = headerOf(plain, 'etag')
      const gzip = await exchange(url, { 'accept-encoding': 'gzip' })
      const isGzip = headerOf(gzip, 'content-encoding') === 'gzip'
      const notModified = etag && (await exchange(url, { 'if-none-match': etag }))
      return [
        path,
        {
          plain: stored(plain),
          ...(isGzip && { gzip: stored(gzip) }),
          ...(notModified && { etag, notModified: stored(notModified) }),
        },
      ]
    }),
  )
  return {
    files: Object.fromEntries(files),
    missing: stored(await exchange(`${origin}${missing}`)),
  }
}

export async function startBare(
  kind: BareKind,
  paths: Readonly<Record<FileName, string>>,
  recording: Recording,
  tls?: TlsFiles,
): Promise<Contender> {
  const program = new URL('bare-server.js', import.meta.url)
  const task: BareServerTask = { kind, tls, ...recording }
  const worker = await startWorker<BareServerAnswers>(program, task)
  const scheme = tls === undefined ? 'http' : 'https'
  return {
    name: kind,
    origin: `${scheme}://127.0.0.1:${await worker.ask('port')}`,
    paths,
    pid: worker.pid,
    stop: () => worker.stop(),
  }
}

function headerOf({ headers }: Exchange, name: string): string | undefined {
  const index = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name)
  return index < 0 ? undefined : headers[index + 1]
}

function stored({ status, headers, body }: Exchange): StoredReply {
  return { status, headers, bodyBase64: body.toString('base64') }
}
