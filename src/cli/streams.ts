/**
 * Commands `start`, `stop`, `status` and `streams`: calls of the API of a service that runs.
 *
 * @module
 */
import { StartStreamBody, StopStreamBody, StreamsBody } from '../api/requests.ts'
import { onTheWire } from '../api/wire-names.ts'
import {
  ApiError,
  Client,
  type EndpointName,
  type RequestBody,
  type ResponseData,
} from '../client/index.ts'
import { MillraceError } from '../errors.ts'
import { apiUrl } from '../service/public-urls.ts'
import { requestFields } from './request-options.ts'
import { formatRecord, formatStarted, formatStreams } from './stream-texts.ts'
import { givenHmacSecret, print, readConfig, report, throwAwaySecrets } from './terminal.ts'

/** Options of each of these commands, beside the fields of its request. */
export interface CommandOptions {
  /** Base URL of the service; default: that of one on this machine with the same settings. */
  readonly url?: string
  /** Prints the answer as JSON. */
  readonly json?: boolean
  readonly hmacSecret?: string
  readonly hmacSecretFile?: string
}

export async function start(streamId: string, options: CommandOptions): Promise<void> {
  const call = openApi(options)
  const body = onTheWire({ ...requestFields(StartStreamBody, options), streamId })
  const started = await call('start-stream', body)
  if (options.json === true) return printJson(started)
  const { playback_token: needsToken } = await call('status', { stream_id: streamId })
  print(formatStarted(started, needsToken))
}

export async function stop(streamId: string, options: CommandOptions): Promise<void> {
  const call = openApi(options)
  const body = onTheWire({ ...requestFields(StopStreamBody, options), streamId })
  show(await call('stop-stream', body), options, formatRecord)
}

export async function status(streamId: string, options: CommandOptions): Promise<void> {
  show(await openApi(options)('status', { stream_id: streamId }), options, formatRecord)
}

export async function streams(options: CommandOptions): Promise<void> {
  const call = openApi(options)
  const body = onTheWire(requestFields(StreamsBody, options))
  const all: ResponseData<'status'>[] = []
  let after: string | null = ''
  do {
    const page: ResponseData<'streams'> = await call('streams', { ...body, after })
    all.push(...page.streams)
    after = page.next
  } while (after !== null)
  show(all, options, formatStreams)
}

function show<Data>(data: Data, { json }: CommandOptions, format: (data: Data) => string): void {
  if (json === true) printJson(data)
  else print(format(data))
}

function printJson(data: unknown): void {
  print(JSON.stringify(data, undefined, 2))
}

/** @returns a function that calls the API; it rejects with `API_CALL_FAILED`, which says what to do */
function openApi({ url, hmacSecret, hmacSecretFile }: CommandOptions) {
  const flags = { 'hmac-secret': hmacSecret, 'hmac-secret-file': hmacSecretFile }
  const secret = givenHmacSecret(flags)
  // The caller need not have JWT_SECRET.
  const address = url ?? apiUrl(readConfig(flags, (given) => ({ ...throwAwaySecrets(), ...given })))
  const client = new Client({ url: address, secret, onWarning: report })
  return async <Name extends EndpointName>(
    name: Name,
    body: RequestBody<Name>,
  ): Promise<ResponseData<Name>> => {
    try {
      return await client.call(name, body)
    } catch (cause) {
      throw new MillraceError('API_CALL_FAILED', { message: explain(cause, address), cause })
    }
  }
}

/** What to do about a refusal, in place of its hint. */
const ADVICE: Partial<Record<ApiError['code'], string>> = {
  SIGNATURE_INVALID: 'set HMAC_SECRET to that of the service',
  STREAM_NOT_FOUND: '`millrace streams` lists all',
}

function explain(error: unknown, url: string): string {
  if (error instanceof ApiError) {
    const advice = ADVICE[error.code] ?? error.hint
    return advice === undefined ? error.message : `${error.message}: ${advice}`
  }
  const { cause = error } = error as Error
  const { code, message } = cause as NodeJS.ErrnoException
  const reason = typeof code === 'string' ? code : message
  return reason === 'ECONNREFUSED' || reason === 'ENOTFOUND'
    ? `cannot connect to ${url} (${reason}): start \`millrace serve\`, or name its address with --url`
    : `no answer from ${url} (${reason}): the call may have taken effect, which \`millrace streams\` shows`
}
