/**
 * Calls between nodes, signed with `CLUSTER_SECRET`. One header covers method, path with query, time, body, and the
 * address of the client whose request a node passes on:
 *
 *     millrace-call: <time, ms> <SHA-256 of the body, or -> <address of the client, or -> <HMAC-SHA256>
 *
 * A reader of the connection can repeat a call for 60 s. That is harmless: GET changes nothing, a stream is yielded once
 * for each claim, and calls of the API have a signature and, with `API_MAX_AGE_SEC`, an age of their own.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { findSigner, sign } from './signature.ts'
import type { Clock } from '../timing/clock.ts'

/** Header with the signature of a request, in lower case as the others. */
export const NODE_CALL = 'millrace-call'

/** Header with the fence under which a node owns the stream, in its replies to other nodes. */
export const NODE_FENCE = 'millrace-fence'

/** Maximum difference between the clocks of two nodes, in milliseconds. */
const TOLERANCE_MS = 60_000

const ABSENT = '-'

/** Bound of the time, of the hash, of an address and of the signature. */
const HEADER = /^(\d{1,15}) (-|[0-9a-f]{64}) (-|[0-9A-Fa-f:.]{2,45}) ([0-9a-f]{64})$/

export interface NodeCall {
  readonly method: string
  /** Path with query, as the receiver sees it. */
  readonly path: string
  /** Default: none. */
  readonly body?: Uint8Array | undefined
  /** Address of the client whose request is passed on; undefined: the call is the node's own. */
  readonly client?: string | undefined
}

/** A call whose signature is valid; the receiver has yet to compare its body. */
export interface VerifiedCall {
  readonly client: string | undefined
  /** Whether these bytes are the body that the caller has signed. */
  readonly hasBody: (body: Uint8Array) => boolean
}

export class NodeCalls {
  readonly #readSecrets: () => readonly string[]
  readonly #clock: Pick<Clock, 'wallMs'>

  /** @param readSecrets  reads `CLUSTER_SECRET`, at least one: the first signs, all are accepted */
  constructor(readSecrets: () => readonly string[], clock: Pick<Clock, 'wallMs'>) {
    this.#readSecrets = readSecrets
    this.#clock = clock
  }

  /** @returns value of the header */
  sign({ method, path, body, client = ABSENT }: NodeCall): string {
    const fields = `${Math.floor(this.#clock.wallMs())} ${hashOf(body)} ${client}`
    return `${fields} ${sign(textOf(method, path, fields), this.#readSecrets()[0] ?? '')}`
  }

  /**
   * @param header  value of the header, from an unknown client
   * @returns undefined for another form, an old call, and a signature that does not match, compared in constant time
   */
  verify({ method, path }: NodeCall, header: string): VerifiedCall | undefined {
    const [, time, hash, client, signature] = HEADER.exec(header) ?? []
    if (hash === undefined || client === undefined || signature === undefined) return undefined
    const text = textOf(method, path, `${time} ${hash} ${client}`)
    const isSigned = findSigner(text, signature, this.#readSecrets()) !== undefined
    const isRecent = Math.abs(this.#clock.wallMs() - Number(time)) <= TOLERANCE_MS
    const hasAddress = client === ABSENT || isIP(client) !== 0
    if (!isSigned || !isRecent || !hasAddress) return undefined
    return {
      client: client === ABSENT ? undefined : client,
      hasBody: (body) => hashOf(body) === hash,
    }
  }
}

/** Bytes to sign: neither a method nor a path has a line feed. */
function textOf(method: string, path: string, fields: string): Buffer {
  return Buffer.from(`${NODE_CALL}\n${method}\n${path}\n${fields}`)
}

function hashOf(body: Uint8Array | undefined): string {
  if (body === undefined || body.length === 0) return ABSENT
  return createHash('sha256').update(body).digest('hex')
}
