/**
 * Requests of the page. Paths are relative, so that it works below a prefix of a reverse proxy.
 *
 * @module
 */

import type { SessionState } from './wire.ts'

/** Refusal by the server. */
class CallError extends Error {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.name = 'CallError'
    this.status = status
  }
}

/**
 * @param body  undefined: GET
 * @param signal  ends the request
 * @throws {CallError} a sentence for the operator
 */
export async function call<Data>(path: string, body?: object, signal?: AbortSignal): Promise<Data> {
  const request = body && {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  }
  const response = await fetch(path, request).catch(() => {
    throw new CallError('The server does not answer. Try again.', 0)
  })
  const text = await response.text()
  try {
    const parsed = JSON.parse(text) as { data: Data; error?: string }
    if (response.ok) return parsed.data
    throw new CallError(sentence(parsed.error ?? response.statusText), response.status)
  } catch (error) {
    if (error instanceof CallError) throw error
    throw new CallError(`The answer was not understood (${response.status}).`, response.status)
  }
}

/** State of the browser's session; open if the server does not answer. */
export async function readSession(): Promise<SessionState> {
  return call<SessionState>('session').catch(() => ({ open: true, lost: false }))
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}
