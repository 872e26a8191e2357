/**
 * Self-signed certificates, encoded here: Node cannot make one, and not every machine has the `openssl` program.
 *
 * @module
 */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Test {
  teardown(close: () => void): unknown
}

export interface TestCertificate {
  /** PEM text. */
  readonly cert: string
  /** PEM text. */
  readonly key: string
}

/** Makes a P-256 key and a certificate for `localhost` and 127.0.0.1, valid from 2020 to 2049. */
export function makeCertificate(name = 'localhost'): TestCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const ecdsaWithSha256 = der(0x30, hex('06082a8648ce3d040302'))
  const commonName = der(0x30, hex('0603550403'), der(0x0c, Buffer.from(name)))
  const distinguishedName = der(0x30, der(0x31, commonName))
  const validity = der(0x30, utcTime('200101000000Z'), utcTime('491231235959Z'))
  const hosts = der(
    0x30,
    der(0x82, Buffer.from('localhost')),
    der(0x87, Buffer.from([127, 0, 0, 1])),
  )
  const alternativeName = der(0x30, hex('0603551d11'), der(0x04, hosts))
  const body = der(
    0x30,
    der(0xa0, der(0x02, hex('02'))),
    der(0x02, Buffer.concat([hex('01'), randomBytes(8)])),
    ecdsaWithSha256,
    distinguishedName,
    validity,
    distinguishedName,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, alternativeName)),
  )
  const signature = der(0x03, hex('00'), sign('sha256', body, privateKey))
  const base64 = der(0x30, body, ecdsaWithSha256, signature).toString('base64')
  const lines = base64.match(/.{1,64}/g)!.join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** Writes certificate and key to a folder that is removed with the test. */
export function writeCertificate(t: Test, { cert, key } = makeCertificate()) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  writeFileSync(paths.cert, cert)
  writeFileSync(paths.key, key)
  return { folder, ...paths }
}

/** DER value: tag, length, content (ITU-T X.690). */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text))
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}
