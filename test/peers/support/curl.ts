/**
 * curl as an HTTP client: several requests on one connection, and their replies to the byte.
 *
 * @module
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Longest time of one request, above the 9 s for which one may wait for media. */
const MAX_SEC = 15
const MAX_OUTPUT_BYTES = 128 * 1024 * 1024

export interface CurlRequest {
  /** Absolute; sent as it stands. */
  readonly url: string
  /** Default: GET. */
  readonly method?: 'GET' | 'HEAD' | 'OPTIONS'
  /** Undefined values are not sent. */
  readonly headers?: Readonly<Record<string, string | undefined>>
}

export interface CurlReply {
  readonly status: number
  /** `1.1` or `2`. */
  readonly version: string
  /** Names in lower case; values of a repeated header are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** Bytes as they were received, with their content coding. */
  readonly body: Buffer
  /** Whether curl opened a connection for the request. */
  readonly isFirstOfConnection: boolean
  /** Time to the first byte, in milliseconds. */
  readonly firstByteMs: number
}

/** Figures that curl writes for each request (`%{json}`). */
interface Figures {
  readonly http_version: string
  readonly num_connects: number
  readonly size_header: number
  readonly size_download: number
  readonly time_starttransfer: number
  readonly time_pretransfer: number
}

/**
 * Sends requests one after the other, on one connection while the server keeps it open. Redirects are not followed.
 *
 * @param flags  of curl, such as `--http2`
 * @throws {Error} if a request has no reply
 */
export async function curl(
  flags: readonly string[],
  requests: readonly CurlRequest[],
): Promise<CurlReply[]> {
  const common = ['-s', '-S', '-k', '-i', '--path-as-is', '-m', String(MAX_SEC), ...flags]
  const args = requests.flatMap(({ url, method = 'GET', headers = {} }, index) => [
    ...(index === 0 ? [] : ['--next']),
    ...common,
    ...['-w', '%{stderr}%{json}\n'],
    ...(method === 'HEAD' ? ['--head'] : ['-X', method]),
    ...Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : ['-H', `${name}: ${value}`],
    ),
    url,
  ])
  const { stdout, stderr } = await run('curl', ['-q', '--fail-early', ...args], {
    encoding: 'buffer',
    maxBuffer: MAX_OUTPUT_BYTES,
    env: { PATH: process.env['PATH'], no_proxy: '*' },
  })
  let at = 0
  return stderr
    .toString()
    .trim()
    .split('\n')
    .map((line) => {
      const figures = JSON.parse(line) as Figures
      const bodyAt = at + figures.size_header
      const head = stdout.subarray(at, bodyAt).toString('latin1')
      const body = stdout.subarray(bodyAt, bodyAt + figures.size_download)
      at = bodyAt + figures.size_download
      return readReply(head, body, figures)
    })
}

function readReply(head: string, body: Buffer, figures: Figures): CurlReply {
  const [first = '', ...lines] = head.trimEnd().split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value
  }
  return {
    status: Number(first.split(' ')[1]),
    version: figures.http_version,
    headers,
    body,
    isFirstOfConnection: figures.num_connects > 0,
    firstByteMs: (figures.time_starttransfer - figures.time_pretransfer) * 1000,
  }
}
