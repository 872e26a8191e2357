/**
 * Clients of HTTP/2 whom the service disconnects while it reads, which ended the process.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import t from 'tap'
import { writeCertificate } from '../support/certificate.ts'
import { freePorts } from '../support/free-port.ts'
import { RECORD_ATTACKS, sendRecords } from './attacks/http2-records.ts'
import { startServiceProcess } from './service-process.ts'

for (const workers of ['0', '1']) {
  t.test(
    `survives clients that it disconnects while it reads, HTTP_WORKERS=${workers}`,
    async (t) => {
      const { cert, key } = writeCertificate(t)
      // Workers share a port, which is none of their choice.
      const [port] = await freePorts(1)
      const { program, target, url } = await startServiceProcess(t, {
        env: { TLS_CERT: cert, TLS_KEY: key, HTTP_WORKERS: workers, HTTP_PORT: String(port) },
      })
      const stop = new AbortController()
      t.teardown(() => stop.abort())
      for (const [name, attack] of Object.entries(RECORD_ATTACKS)) {
        t.equal(await sendRecords(target, stop.signal, { ...attack, attempts: 4 }), 4, name)
        const request = get(`${url}/watch/studio`, { rejectUnauthorized: false, agent: false })
        const [reply] = (await once(request, 'response')) as [IncomingMessage]
        t.equal(reply.resume().statusCode, 200, name)
      }
      t.notMatch(program.output(), /Assertion failed/)
      program.kill('SIGTERM')
      t.equal(await program.exit, 0)
    },
  )
}
