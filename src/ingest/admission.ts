/**
 * Admission of publishers: decides whether an encoder may publish, and connects it to its stream.
 *
 * @module
 */
import type { BlockList } from 'node:net'
import { keyIdOf } from '../auth/key-list.ts'
import { parseStreamKey, streamNamedIn, type StreamKeyClaims } from '../auth/stream-key.ts'
import { VerifiedKeys } from '../auth/verified-keys.ts'
import { addressList, listContains } from '../binary/ip-address.ts'
import type { Clock } from '../timing/clock.ts'
import { MillraceError } from '../errors.ts'
import {
  parseProgramChoice,
  PROGRAM_CHOICES,
  type ProgramChoice,
} from '../mpegts/program-choice.ts'
import type { EncoderSource } from '../api/records.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Encoder, Publication } from '../stream/publication.ts'
import { PublisherLimits } from './publisher-limits.ts'
import { isFed, waitForSilence } from './silence.ts'

/** Request of an encoder to publish. */
export interface PublishRequest {
  /** As sent: untrusted, and a credential that is never logged. */
  readonly streamKey: string
  /** Port that the encoder has called. */
  readonly port: number
  readonly address: string
  /** `address:port` */
  readonly remote: string
  /** Whether it is another connection of the encoder that feeds the stream. */
  readonly isJoining?: boolean
  /** Moves it to the node that an error names, if any; resolves to whether that takes it. Absent: it stays here. */
  readonly moveAway?: ((error: MillraceError) => Promise<boolean>) | undefined
  /** @throws {MillraceError} `ENCRYPTION_MISSING`, `ENCRYPTION_UNEXPECTED`, `PASSPHRASE_WRONG`; see `ConnectionRequest` */
  readonly checkEncryption: (passphrase?: string) => Promise<void>
}

export interface Admission {
  /** Decides on a request; rejects with a `MillraceError` that was reported to `onRejected`, unless the encoder has moved. */
  admit(request: PublishRequest, signal: AbortSignal): Promise<AcceptedPublisher>
  /** Decides whether a stream may call its source, which becomes its main encoder; rejects with a `MillraceError`. */
  admitPulled(stream: LiveStream, signal: AbortSignal): Promise<AcceptedPublisher>
}

/** What the stream key of a publisher says. */
export interface PublisherKey {
  /** Which encoder of the stream it is for. */
  readonly source: EncoderSource
  readonly program?: ProgramChoice
  /** Expiry, in milliseconds since 1970; undefined without a key. */
  readonly keyExpiresAtMs?: number
  /** See `key-list.ts`; undefined without a key. */
  readonly keyId?: string
}

/** Publisher whose request is accepted: `connect` once, then `disconnected`; or `refuse`. */
export interface AcceptedPublisher extends PublisherKey {
  /** Passphrase of the stream, which the encoder has to use. */
  readonly passphrase?: string
  /** Min receive latency of the stream. */
  readonly latencyMs?: number
  /**
   * Connects the encoder to the stream.
   *
   * @returns receiver of the encoder's payloads; undefined if the encoder can no longer be admitted: it is closed, and the
   *   refusal reported
   */
  connect(encoder: Encoder): Publication | undefined
  /** The encoder has disconnected; none of its payloads follows. */
  disconnected(): void
  /** Reports that the encoder does not connect after all. */
  refuse(error: MillraceError): void
}

/** What differs between encoders that call and sources that are called. */
interface Rules {
  /** @throws {MillraceError} `ADDRESS_FORBIDDEN` */
  readonly checkAddress: () => void
  /** @throws {MillraceError} `STREAM_KEY_REVOKED` */
  readonly checkKey?: () => void
  /** Reports a refusal. */
  readonly refuse: (error: MillraceError) => void
}

/** Streams as admission sees them. */
export interface AdmissionStreams {
  /** @returns undefined for an unknown id */
  find(streamId: string): LiveStream | undefined
  /**
   * In a cluster also rejects with `REGISTRY_UNAVAILABLE`, and `STREAM_BUSY` for an encoder that another node has.
   *
   * @throws {MillraceError} for a verified key that is revoked, or has no stream and cannot resume one
   */
  admit(claims: StreamKeyClaims): LiveStream | Promise<LiveStream>
  /**
   * In a cluster: has the stream of a port run here, for an encoder that sends no stream key. Absent: it does.
   *
   * @returns undefined if no stream has the port any more
   * @throws {MillraceError} what the stream refuses an encoder for, and see `admit`
   */
  admitUnkeyed?(request: PublishRequest): Promise<LiveStream | undefined>
  /** @throws {MillraceError} `STREAM_KEY_REVOKED` */
  checkKey(claims: StreamKeyClaims): void
}

export interface AdmissionOptions {
  readonly streams: AdmissionStreams
  /** Stream that has a port to itself, where its encoder needs no stream key; undefined: all streams share it. */
  readonly streamOfPort: (port: number) => string | undefined | Promise<string | undefined>
  /** Reads the values of `JWT_SECRET`: the same array until they are replaced. */
  readonly readJwtSecrets: () => readonly string[]
  readonly maxPublishers: number
  /** Whether all encoders need `SRT_PASSPHRASE`. Default: false. */
  readonly hasPassphrase?: boolean
  /** Addresses of encoders that may publish; undefined: all. */
  readonly allowFrom?: BlockList | undefined
  /** Whether the process reads packets more slowly than they arrive. */
  readonly isOverloaded: () => boolean
  readonly clock: Clock
  /** Waits; rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** Called for each refusal; `stream` is the one named in the stream key, undefined if it does not exist. */
  readonly onRejected: (
    remote: string,
    error: MillraceError,
    stream: LiveStream | undefined,
  ) => void
}

export function createAdmission(options: AdmissionOptions): Admission {
  const { streams, clock } = options
  let secrets = options.readJwtSecrets()
  let keys = new VerifiedKeys(secrets)
  const limits = new PublisherLimits(options.maxPublishers, options.isOverloaded)

  return { admit, admitPulled }

  async function admit(request: PublishRequest, signal: AbortSignal): Promise<AcceptedPublisher> {
    const { streamKey, port, address, remote } = request
    const rulesFor = (found: LiveStream): Rules => ({
      checkAddress: () => checkAddress(found.policy.allowFrom, address),
      refuse: (error) => options.onRejected(remote, error, found),
    })
    let stream: LiveStream | undefined
    try {
      if (!isAllowed(options.allowFrom, address)) {
        const message =
          'the address of the encoder is not allowed: add its CIDR block to PUBLISH_FROM'
        throw new MillraceError('ADDRESS_FORBIDDEN', { message })
      }
      const portStreamId = await options.streamOfPort(port)
      stream = portStreamId === undefined ? undefined : streams.find(portStreamId)
      if (portStreamId !== undefined && streamKey === '' && streams.admitUnkeyed !== undefined)
        stream = await streams.admitUnkeyed(request)
      if (stream !== undefined && streamKey === '') {
        const { encryption, policy } = stream
        checkProtection({ encryption, allowFrom: policy.allowFrom }, options.hasPassphrase)
        checkAddress(policy.allowFrom, address)
        await takePlace(stream, 'main', request, signal)
        return accepted(stream, { source: 'main' }, rulesFor(stream))
      }
      // The stream is looked up before the key is parsed and verified, so that a refusal of the key is reported to the stream.
      stream ??= streams.find(streamNamedIn(streamKey) ?? '')
      const { rid, program } = parseStreamKey(streamKey)
      if (portStreamId !== undefined && rid !== portStreamId)
        throw new MillraceError('STREAM_KEY_MISMATCH')
      stream = streams.find(rid)
      const claims = await verifiedKeys().verify(streamKey, new Date(clock.wallMs()))
      const choice = program === undefined ? undefined : chooseProgram(program)
      stream = await streams.admit(claims)
      checkAddress(stream.policy.allowFrom, address)
      const keyExpiresAtMs = claims.expiresAtSec * 1000
      // The reconnect grace begins again, so that overload ends no stream whose encoder keeps calling.
      if (options.isOverloaded()) stream.renewKey(keyExpiresAtMs)
      const source: EncoderSource = claims.source ?? 'main'
      await takePlace(stream, source, request, signal)
      const ofKey = { keyExpiresAtMs, keyId: keyIdOf(claims) }
      const key = { source, ...(choice !== undefined && { program: choice }), ...ofKey }
      const checkKey = () => streams.checkKey(claims)
      return accepted(stream, key, { ...rulesFor(stream), checkKey })
    } catch (error) {
      const isRefused = error instanceof MillraceError && !(await request.moveAway?.(error))
      if (isRefused) options.onRejected(remote, error, stream)
      throw error
    }
  }

  async function admitPulled(stream: LiveStream, signal: AbortSignal): Promise<AcceptedPublisher> {
    await waitForTurn(stream, 'main', signal)
    // Where it may be is up to PULL_ALLOW, and its report says that it was refused.
    return accepted(
      stream,
      { source: 'main' },
      { checkAddress: () => undefined, refuse: () => undefined },
    )
  }

  /** Forgets verified keys when the secrets are replaced. */
  function verifiedKeys(): VerifiedKeys {
    const current = options.readJwtSecrets()
    if (current !== secrets) keys = new VerifiedKeys(current)
    secrets = current
    return keys
  }

  async function takePlace(
    stream: LiveStream,
    source: EncoderSource,
    { isJoining = false, checkEncryption }: PublishRequest,
    signal: AbortSignal,
  ): Promise<void> {
    if (!isJoining) return waitForTurn(stream, source, signal)
    // First, so that a caller without the passphrase does not use up the rate of those who have it.
    await checkEncryption(stream.encryption?.passphrase)
    limits.countLine(stream, source, clock.nowUs())
  }

  /**
   * Waits until no encoder of this kind feeds the stream.
   *
   * @throws {MillraceError} `STREAM_BANNED`, `OVERLOADED`, `TOO_MANY_PUBLISHERS`, `STREAM_BUSY` or `TOO_MANY_CONNECTIONS`
   */
  async function waitForTurn(
    stream: LiveStream,
    source: EncoderSource,
    signal: AbortSignal,
  ): Promise<void> {
    const arrivedUs = clock.nowUs()
    limits.checkRoom(stream, source, arrivedUs)
    await limits.wait(stream, source, arrivedUs, async () => {
      const sleep = (ms: number) => options.sleep(ms, signal)
      const isSilent = await waitForSilence(stream, { sources: [source], clock, sleep, signal })
      if (!isSilent) throw new MillraceError('STREAM_BUSY')
    })
    limits.checkConnections(stream, source, clock.nowUs())
  }

  function accepted(stream: LiveStream, key: PublisherKey, rules: Rules): AcceptedPublisher {
    const { source } = key
    let isCounted = false
    const passphrase = stream.encryption?.passphrase
    const { latencyMs } = stream.policy
    return {
      ...key,
      ...(passphrase !== undefined && { passphrase }),
      ...(latencyMs !== undefined && { latencyMs }),
      connect: (encoder) => {
        try {
          // Since the decision another encoder may have connected, and options and keys may have changed.
          rules.checkAddress()
          rules.checkKey?.()
          if (stream.status === 'STOPPED' || isFed(stream, [source], clock.nowUs()))
            throw new MillraceError('STREAM_BUSY')
          limits.checkRoom(stream, source, clock.nowUs())
          limits.countConnection(stream, source, clock.nowUs())
          limits.addPublisher()
          isCounted = true
          return stream.publish(encoder)
        } catch (error) {
          if (!(error instanceof MillraceError)) throw error
          rules.refuse(error)
          encoder.close()
          return undefined
        }
      },
      disconnected: () => {
        if (isCounted) limits.removePublisher()
      },
      refuse: rules.refuse,
    }
  }
}

/**
 * A stream may have been started at a node that has `SRT_PASSPHRASE`.
 *
 * @throws {MillraceError} `ENCRYPTION_MISSING` for an encoder without a stream key where everybody could publish
 */
export function checkProtection(
  { encryption, allowFrom }: { readonly encryption: unknown; readonly allowFrom: unknown },
  hasPassphrase = false,
): void {
  if (hasPassphrase || encryption !== undefined || allowFrom !== undefined) return
  const message =
    'the port is open to all who find it: set SRT_PASSPHRASE on all nodes, or start the stream with encryption or allow_from'
  throw new MillraceError('ENCRYPTION_MISSING', { message })
}

/** @throws {MillraceError} `ADDRESS_FORBIDDEN` for an encoder that the stream does not allow */
export function checkAddress(allowFrom: readonly string[] | undefined, address: string): void {
  if (!isAllowed(allowFrom && addressList(allowFrom), address))
    throw new MillraceError('ADDRESS_FORBIDDEN')
}

function isAllowed(list: BlockList | undefined, address: string): boolean {
  return list === undefined || listContains(list, address)
}

/** @param text  untrusted */
function chooseProgram(text: string): ProgramChoice {
  const choice = parseProgramChoice(text)
  if (choice !== undefined) return choice
  const message = `program in the stream key must be ${PROGRAM_CHOICES}`
  throw new MillraceError('STREAM_KEY_MALFORMED', { message })
}
