import { X509Certificate, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t from 'tap'
import { CertificateSource } from '../../../src/http/tls/certificate-source.ts'
import type { Certificate } from '../../../src/http/tls/certificate.ts'
import { createLogger } from '../../../src/logger.ts'
import {
  makeCertificate,
  writeCertificate,
  type TestCertificate,
} from '../../support/certificate.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

t.test('reads a certificate and its key', async (t) => {
  const { options, expiresAt } = new CertificateSource(writeCertificate(t)).read()
  t.equal(expiresAt.getUTCFullYear(), 2049)
  t.match(options.cert?.toString(), /BEGIN CERTIFICATE/)
})

t.test('names the setting, the file and the problem of a file that cannot be used', async (t) => {
  const good = makeCertificate()
  const other = makeCertificate()
  const encrypted = generateKeyPairSync('ec', {
    namedCurve: 'prime256v1',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
  const cases: [files: TestCertificate, message: RegExp][] = [
    [{ ...good, cert: '' }, /^TLS_CERT is \S+cert.pem: expected a PEM file with the certificate/],
    [{ ...good, cert: good.key }, /^TLS_CERT is \S+cert.pem: expected a PEM file with the cert/],
    [{ ...good, key: '' }, /^TLS_KEY is \S+key.pem: expected a PEM file with the private key/],
    [{ ...good, key: good.cert }, /^TLS_KEY is \S+key.pem: expected a PEM file with the private/],
    [{ ...good, key: encrypted }, /^TLS_KEY is \S+key.pem: .* without a passphrase/],
    [{ ...good, key: other.key }, /^TLS_KEY is \S+key.pem: expected the private key of the first/],
  ]
  for (const [files, message] of cases) {
    const source = new CertificateSource(writeCertificate(t, files))
    t.throws(() => source.read(), { code: 'CONFIG_INVALID', message })
  }
  const paths = writeCertificate(t)
  t.throws(() => new CertificateSource({ ...paths, key: '/none.pem' }).read(), {
    message: 'TLS_KEY is /none.pem: expected a file that this process can read (ENOENT)',
  })
})

t.test('takes a new certificate however the files are replaced', async (t) => {
  const paths = writeCertificate(t)
  const followed = follow(t, paths)
  const replace: Record<string, (next: TestCertificate) => void> = {
    'in place': ({ cert, key }) => {
      writeFileSync(paths.cert, cert)
      writeFileSync(paths.key, key)
    },
    'by renames': ({ cert, key }) => {
      writeFileSync(`${paths.cert}.new`, cert)
      writeFileSync(`${paths.key}.new`, key)
      renameSync(`${paths.cert}.new`, paths.cert)
      renameSync(`${paths.key}.new`, paths.key)
    },
  }
  for (const [how, act] of Object.entries(replace)) {
    const next = makeCertificate()
    act(next)
    await until(how, () => followed.newest()?.options.cert?.toString() === next.cert)
  }
  t.notOk(followed.log.some((line) => line.includes('cannot be used')))
})

t.test('follows the symbolic links of a mounted secret in Kubernetes', async (t) => {
  const { folder } = writeCertificate(t)
  const publish = (name: string, { cert, key }: TestCertificate) => {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'tls.crt'), cert)
    writeFileSync(join(folder, name, 'tls.key'), key)
    symlinkSync(name, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  publish('..1', makeCertificate())
  for (const name of ['tls.crt', 'tls.key']) {
    symlinkSync(join('..data', name), join(folder, name))
  }
  const followed = follow(t, { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') })
  const next = makeCertificate()
  publish('..2', next)
  rmSync(join(folder, '..1'), { recursive: true })
  await until('the next', () => followed.newest()?.options.cert?.toString() === next.cert)
})

t.test('keeps the old certificate and logs once while the new one cannot be used', async (t) => {
  const paths = writeCertificate(t)
  const followed = follow(t, paths)
  const next = makeCertificate()
  writeFileSync(paths.cert, next.cert)
  const problem = () => followed.log.filter((line) => line.includes('cannot be used'))
  await until('a line', () => problem().length === 1)
  t.match(problem()[0], /TLS_KEY is \S+key.pem: expected the private key of the first certificate/)
  rmSync(paths.key)
  await until('another', () => problem().length === 2)
  t.match(problem()[1], /ENOENT/)
  t.equal(followed.newest(), undefined)
  writeFileSync(paths.key, next.key)
  await until('the next', () => followed.newest()?.options.cert?.toString() === next.cert)
  t.equal(problem().length, 2)
})

t.test('serves a new certificate to new connections', async (t) => {
  const paths = writeCertificate(t)
  const { server } = await startService(t, { tls: { cert: paths.cert, key: paths.key } })
  t.match(server.publicUrl, /^https:\/\/127\.0\.0\.1:\d+$/)
  const { playlistUrl } = await server.startStream({ streamId: 'studio' })
  t.match(playlistUrl, /^https:/)
  const fingerprint = async () => {
    const socket = connect({ port: server.httpPort, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  const before = await fingerprint()
  const next = makeCertificate()
  writeFileSync(paths.cert, next.cert)
  writeFileSync(paths.key, next.key)
  const wanted = new X509Certificate(next.cert).fingerprint256
  t.not(before, wanted)
  await until('the new one', async () => (await fingerprint()) === wanted)
})

function follow(
  t: { teardown(close: () => void): unknown },
  paths: { readonly cert: string; readonly key: string },
) {
  const log: string[] = []
  const seen: Certificate[] = []
  const source = new CertificateSource(paths)
  source.read()
  const stop = source.follow({
    onChange: (certificate) => void seen.push(certificate),
    logger: createLogger('info', { write: (line) => void log.push(line) }),
    pollMs: 20,
  })
  t.teardown(stop)
  return { log, newest: () => seen.at(-1) }
}
