/**
 * Admission of encoders: decides whether a caller may publish, and connects its payloads to a stream.
 *
 * @module
 */
import type { BlockList } from 'node:net'
import { parseStreamKey, type StreamKeyClaims } from '../auth/stream-key.ts'
import { VerifiedKeys } from '../auth/verified-keys.ts'
import { listContains } from '../binary/address-list.ts'
import type { Clock } from '../clock.ts'
import { MillraceError } from '../errors.ts'
import {
  parseProgramChoice,
  PROGRAM_CHOICES,
  type ProgramChoice,
} from '../mpegts/program-choice.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Encoder, Publication } from '../stream/publication.ts'
import { BurstQueue, type MediaSink } from './burst-queue.ts'
import { PublisherLimits } from './publisher-limits.ts'

/** Time without a packet after which another encoder with a valid key replaces the current one. */
const TAKEOVER_AFTER_US = 1_000_000

/** Interval at which a waiting caller checks whether the current encoder still sends. */
const TAKEOVER_POLL_MS = 50

/** A packet that arrives within this time after a call may have been in flight when the current encoder died. */
const IN_FLIGHT_US = 200_000

/** An encoder that asks to publish. */
export interface Caller {
  /** As sent: untrusted, and a credential that is never logged. */
  readonly streamKey: string
  readonly address: string
  /** `address:port` */
  readonly remote: string
}

/** Decides on a caller; rejects with a `MillraceError` that was reported to `onRejected`. */
export type Admit = (caller: Caller, signal: AbortSignal) => Promise<AdmittedCaller>

/** Sink of an admitted caller: `open` once, then its payloads, then `end`; or `refuse`. */
export interface AdmittedCaller extends MediaSink {
  /** Program selected in the stream key. */
  readonly program?: ProgramChoice
  /** Passphrase of the stream, which the caller has to use. */
  readonly passphrase?: string
  /** Min receive latency of the stream. */
  readonly latencyMs?: number
  /** Size of the payloads that wait for a later turn of the event loop. */
  readonly queuedBytes: number
  /** Connects the encoder to the stream. Reports a refusal and closes the encoder if it can no longer be admitted. */
  open(encoder: Encoder): void
  /** Reports that the caller does not connect after all. */
  refuse(error: MillraceError): void
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
}

export interface AdmissionOptions {
  readonly streams: AdmissionStreams
  /** Reads the values of `JWT_SECRET`: the same array until they are replaced. */
  readonly readJwtSecrets: () => readonly string[]
  readonly maxPublishers: number
  /** Addresses of encoders that may publish; undefined: all. */
  readonly allowFrom?: BlockList | undefined
  /** Whether the process reads packets more slowly than they arrive. */
  readonly isOverloaded: () => boolean
  readonly clock: Clock
  /** Waits; rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** Calls a function in a later turn of the event loop. */
  readonly defer: (act: () => void) => void
  /** Called for each refusal; `stream` is the one named in the stream key, undefined if it does not exist. */
  readonly onRejected: (
    remote: string,
    error: MillraceError,
    stream: LiveStream | undefined,
  ) => void
}

export function createAdmission(options: AdmissionOptions): Admit {
  const { streams, clock } = options
  let secrets = options.readJwtSecrets()
  let keys = new VerifiedKeys(secrets)
  const limits = new PublisherLimits(options.maxPublishers, options.isOverloaded)

  return async ({ streamKey, address, remote }, signal) => {
    let stream: LiveStream | undefined
    try {
      if (!isAllowed(options.allowFrom, address)) {
        const message =
          'the address of the encoder is not allowed: add its CIDR block to PUBLISH_FROM'
        throw new MillraceError('ADDRESS_FORBIDDEN', { message })
      }
      // The stream is looked up before the key is verified, so that a refusal of the key is reported to the stream.
      const { rid, program } = parseStreamKey(streamKey)
      stream = streams.find(rid)
      const claims = await verifiedKeys().verify(streamKey, new Date(clock.wallMs()))
      const choice = program === undefined ? undefined : chooseProgram(program)
      stream = await streams.admit(claims)
      checkAddress(stream, address)
      // The reconnect grace begins again, so that overload ends no stream whose encoder keeps calling.
      if (options.isOverloaded()) stream.renewKey(claims.expiresAtSec * 1000)
      await waitForTurn(stream, signal)
      return admitted(stream, { address, remote }, choice)
    } catch (error) {
      if (error instanceof MillraceError) options.onRejected(remote, error, stream)
      throw error
    }
  }

  /** Forgets verified keys when the secrets are replaced. */
  function verifiedKeys(): VerifiedKeys {
    const current = options.readJwtSecrets()
    if (current !== secrets) keys = new VerifiedKeys(current)
    secrets = current
    return keys
  }

  /**
   * Waits until no encoder feeds the stream.
   *
   * @throws {MillraceError} `STREAM_BANNED`, `OVERLOADED`, `TOO_MANY_PUBLISHERS`, `STREAM_BUSY` or `TOO_MANY_CONNECTIONS`
   */
  async function waitForTurn(stream: LiveStream, signal: AbortSignal): Promise<void> {
    const arrivedUs = clock.nowUs()
    limits.checkRoom(stream, arrivedUs)
    await limits.wait(stream, arrivedUs, async () => {
      while (isBusy(stream)) {
        const packetUs = stream.encoder!.lastPacketUs
        if (packetUs - arrivedUs > IN_FLIGHT_US || signal.aborted)
          throw new MillraceError('STREAM_BUSY')
        await options.sleep(TAKEOVER_POLL_MS, signal).catch(() => undefined)
      }
    })
    limits.checkConnections(stream, clock.nowUs())
  }

  function admitted(
    stream: LiveStream,
    { address, remote }: Pick<Caller, 'address' | 'remote'>,
    program: ProgramChoice | undefined,
  ): AdmittedCaller {
    let publication: Publication | undefined
    let isCounted = false
    const queue = new BurstQueue(
      {
        push: (payload) => publication?.push(payload),
        gap: (lostPackets) => publication?.gap(lostPackets),
        end: (reason) => {
          if (isCounted) limits.removePublisher()
          publication?.end(reason)
        },
      },
      options.defer,
    )
    const passphrase = stream.encryption?.passphrase
    const { latencyMs } = stream.terms
    const refuse = (error: MillraceError) => options.onRejected(remote, error, stream)
    return {
      ...(program !== undefined && { program }),
      ...(passphrase !== undefined && { passphrase }),
      ...(latencyMs !== undefined && { latencyMs }),
      open: (encoder) => {
        try {
          // Since the decision another encoder may have connected, and `allow_from` may have changed.
          checkAddress(stream, address)
          if (stream.status === 'STOPPED' || isBusy(stream)) throw new MillraceError('STREAM_BUSY')
          limits.checkRoom(stream, clock.nowUs())
          limits.countConnection(stream, clock.nowUs())
          limits.addPublisher()
          isCounted = true
          publication = stream.publish(encoder)
        } catch (error) {
          if (!(error instanceof MillraceError)) throw error
          refuse(error)
          encoder.close()
        }
      },
      get queuedBytes() {
        return queue.sizeBytes
      },
      push: (payload) => queue.push(payload),
      gap: (lostPackets) => queue.gap(lostPackets),
      end: (reason) => queue.end(reason),
      refuse,
    }
  }

  /** Whether an encoder feeds the stream: it sent a packet in the last second, and the stream is not INTERRUPTED. */
  function isBusy({ status, encoder }: LiveStream): boolean {
    if (status !== 'STREAMING' || encoder === undefined) return false
    return clock.nowUs() - encoder.lastPacketUs < TAKEOVER_AFTER_US
  }
}

/** @throws {MillraceError} `ADDRESS_FORBIDDEN` for an encoder that the stream does not allow */
function checkAddress({ terms }: LiveStream, address: string): void {
  if (!isAllowed(terms.allowFrom, address)) throw new MillraceError('ADDRESS_FORBIDDEN')
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
