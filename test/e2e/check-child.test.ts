/** The check in a process of its own. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { CheckOrder, CheckSummary } from '../../src/check/child.ts'
import { makeCertificate } from '../support/certificate.ts'

const PROGRAM = new URL('../../src/check/child.ts', import.meta.url)
const PLAYLIST = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n0.ts\n#EXT-X-ENDLIST\n'

/** Without a limit: the check has the lowest priority, and hardly any time on a busy machine. */
const LONG_SEC = 3600

/**
 * An HTTPS server with a certificate that nobody has signed; `paths` are those asked for, `closed` resolves at the end of its
 * first connection.
 */
async function startUntrusted(t: Test, bodyOf: (path: string) => string) {
  const paths: string[] = []
  const server = createServer(makeCertificate(), ({ url = '' }, response) => {
    paths.push(url)
    response.end(bodyOf(url))
  })
  const closed = new Promise((resolve) => {
    server.once('connection', (socket: Socket) => socket.once('close', resolve))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, paths, closed }
}

/** Starts a check, and another one if a request of it has run into its time limit. @returns the summary */
async function check(t: Test, order: CheckOrder): Promise<CheckSummary> {
  for (;;) {
    const summary = await checkOnce(t, order)
    const evidence = summary.findings.flatMap((finding) => finding.evidence).join()
    if (!/(within|for) 10 s/.test(evidence)) return summary
    t.comment(evidence)
  }
}

async function checkOnce(t: Test, order: CheckOrder): Promise<CheckSummary> {
  const child = fork(PROGRAM, { env: {} })
  t.teardown(() => child.kill())
  child.send(order)
  return new Promise((resolve, reject) => {
    child.once('message', ({ summary }: { readonly summary: CheckSummary }) => resolve(summary))
    child.once('exit', (code) => reject(new Error(`ended without a summary: ${code}`)))
  })
}

t.test('accepts an unknown certificate of the origin to check', async (t) => {
  const { url, paths } = await startUntrusted(t, () => PLAYLIST)
  const summary = await check(t, { url: `${url}/own.m3u8`, seconds: LONG_SEC, maxBytes: 1_000_000 })
  t.match(summary, { playlists: 1, isCutShort: false })
  t.ok(paths.includes('/own.m3u8'))
})

t.test('accepts an unknown certificate of no other origin', async (t) => {
  const other = await startUntrusted(t, () => PLAYLIST)
  const variants = `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n${other.url}/other.m3u8\n`
  const own = await startUntrusted(t, () => variants)
  const summary = check(t, {
    url: `${own.url}/master.m3u8`,
    seconds: LONG_SEC,
    maxBytes: 1_000_000,
  })
  // The check would end with the playlist.
  await Promise.race([other.closed, summary])
  t.strictSame(other.paths, [])
})

t.test('says that its size limit cut it short', async (t) => {
  const own = await startUntrusted(t, () => PLAYLIST)
  const order = { url: `${own.url}/live.m3u8`, seconds: LONG_SEC, maxBytes: 10 }
  t.match(await check(t, order), { isCutShort: true })
})
