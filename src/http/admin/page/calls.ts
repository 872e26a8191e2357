/**
 * Requests of the page. Paths are relative, so that it works below a prefix of a reverse proxy.
 *
 * @module
 */

/** Refusal by the server. */
export class CallError extends Error {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.name = 'CallError'
    this.status = status
  }
}

/**
 * @param body  undefined: GET
 * @throws {CallError} a sentence for the operator
 */
export async function call<Data>(path: string, body?: object): Promise<Data> {
  const request = body && {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
  const reply = await fetch(path, request).catch(() => {
    throw new CallError('The server does not answer. Try again.', 0)
  })
  const text = await reply.text()
  try {
    const answer = JSON.parse(text) as { data: Data; error?: string }
    if (reply.ok) return answer.data
    throw new CallError(sentence(answer.error ?? reply.statusText), reply.status)
  } catch (error) {
    if (error instanceof CallError) throw error
    throw new CallError(`The answer was not understood (${reply.status}).`, reply.status)
  }
}

/** Whether the browser has a session; true if the server does not answer. */
export async function hasSession(): Promise<boolean> {
  return call<{ open: boolean }>('session').then(
    ({ open }) => open,
    () => true,
  )
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}
