/**
 * Certificate chain and private key of the HTTP server, from PEM files.
 *
 * @module
 */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { MillraceError } from '../../errors.ts'

/** Paths of `TLS_CERT` and `TLS_KEY`. */
export interface CertificatePaths {
  readonly cert: string
  readonly key: string
}

/** Contents of both files. */
export interface CertificateFiles {
  readonly cert: Buffer
  readonly key: Buffer
}

export interface Certificate {
  /** Options for a TLS server. */
  readonly options: SecureContextOptions
  readonly expiresAt: Date
}

/**
 * Forward secrecy only: RFC 9113 section 9.2.2 prohibits the others for HTTP/2, and a key exchange with RSA would cost
 * a private key operation for each client at a time of its choice. AES-128 first, the cheapest a byte.
 */
const CIPHERS =
  'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:' +
  'ECDHE+AES128+AESGCM:ECDHE+AESGCM:ECDHE+CHACHA20'

/**
 * Parses certificate and key, and checks that they belong together.
 *
 * @param paths  for the message of an error, which contains nothing of the files
 * @throws {MillraceError} `CONFIG_INVALID` with the setting and the problem
 */
export function parseCertificate(files: CertificateFiles, paths: CertificatePaths): Certificate {
  const chain = parse('TLS_CERT', paths.cert, 'a PEM file with the certificate chain', () => {
    return new X509Certificate(files.cert)
  })
  const isEncrypted = /ENCRYPTED/.test(files.key.toString('latin1'))
  const wanted = `a PEM file with the private key${isEncrypted ? ', without a passphrase' : ''}`
  const key = parse('TLS_KEY', paths.key, wanted, () => createPrivateKey(files.key))
  if (!chain.checkPrivateKey(key)) {
    throw invalid('TLS_KEY', paths.key, 'the private key of the first certificate in TLS_CERT')
  }
  const options = { ...files, minVersion: 'TLSv1.2', ciphers: CIPHERS } as const
  // OpenSSL refuses for example RSA keys under 2048 bits only here.
  parse('TLS_CERT', paths.cert, 'a certificate chain and key that OpenSSL accepts', () =>
    createSecureContext(options),
  )
  return { options, expiresAt: new Date(chain.validTo) }
}

/** @returns error for a file that is not what it should be */
export function invalid(
  setting: 'TLS_CERT' | 'TLS_KEY',
  path: string,
  wanted: string,
  cause?: unknown,
): MillraceError {
  const reason = (cause as NodeJS.ErrnoException | undefined)?.code
  const problem = reason === undefined ? '' : ` (${reason})`
  const message = `${setting} is ${path}: expected ${wanted}${problem}`
  return new MillraceError('CONFIG_INVALID', { message, cause })
}

function parse<Parsed extends X509Certificate | KeyObject | object>(
  setting: 'TLS_CERT' | 'TLS_KEY',
  path: string,
  wanted: string,
  read: () => Parsed,
): Parsed {
  try {
    return read()
  } catch (error) {
    throw invalid(setting, path, wanted, error)
  }
}
