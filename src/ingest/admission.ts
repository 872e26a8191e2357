/**
 * Accept hook of the SRT listener: decides whether an encoder may publish, and connects its payloads to a stream.
 *
 * @module
 */
import { parseStreamKey, type StreamKeyClaims } from '../auth/stream-key.ts'
import { VerifiedKeys } from '../auth/verified-keys.ts'
import type { Clock } from '../clock.ts'
import { MillraceError } from '../errors.ts'
import {
  parseProgramChoice,
  PROGRAM_CHOICES,
  type ProgramChoice,
} from '../mpegts/program-choice.ts'
import type { AcceptDecision, ConnectionRequest, PayloadSink } from '../srt/types.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import type { Publication } from '../stream/publication.ts'
import { BurstQueue } from './burst-queue.ts'
import { asEncoder } from './publisher-connection.ts'
import { PublisherLimits } from './publisher-limits.ts'

/** Silence after which an encoder is replaced by another with a valid key. */
const TAKEOVER_AFTER_US = 1_000_000

/** Interval at which a waiting caller checks whether the current encoder still sends. */
const TAKEOVER_POLL_MS = 50

/** A packet that arrives within this time after a call may have been in flight when the current encoder died. */
const IN_FLIGHT_US = 200_000

/** Streams as admission sees them. */
export interface AdmissionStreams {
  /** @returns undefined for an unknown id */
  find(streamId: string): LiveStream | undefined
  /** @throws {MillraceError} for a verified key without a stream */
  admit(claims: StreamKeyClaims): LiveStream
}

export interface AdmissionOptions {
  readonly streams: AdmissionStreams
  readonly jwtSecrets: readonly string[]
  readonly maxPublishers: number
  readonly clock: Clock
  /** Waits; rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** Calls a function in a later turn of the event loop. */
  readonly defer: (act: () => void) => void
  /** Called for each refusal; `stream` is that of the key, if it exists. */
  readonly onRejected: (
    request: ConnectionRequest,
    error: MillraceError,
    stream: LiveStream | undefined,
  ) => void
}

/** @returns an accept hook that turns every refusal into a reject code and throws only programmer errors */
export function createAdmission(options: AdmissionOptions) {
  const { streams, clock } = options
  const keys = new VerifiedKeys(options.jwtSecrets)
  const limits = new PublisherLimits(options.maxPublishers)

  return async (request: ConnectionRequest, signal: AbortSignal): Promise<AcceptDecision> => {
    let stream: LiveStream | undefined
    try {
      // The stream is looked up before the key is verified, so that a refusal of the key is reported to the stream.
      const { rid, program } = parseStreamKey(request.streamId)
      stream = streams.find(rid)
      const claims = await keys.verify(request.streamId, new Date(clock.wallMs()))
      const choice = program === undefined ? undefined : chooseProgram(program)
      const admitted = streams.admit(claims)
      stream = admitted
      await waitForTurn(admitted, signal)
      const passphrase = admitted.encryption?.passphrase
      return {
        sink: createSink(admitted, request, choice),
        onRefused: (error) => options.onRejected(request, error, admitted),
        ...(passphrase !== undefined && { passphrase }),
      }
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      options.onRejected(request, error, stream)
      return { reject: error.rejectCode }
    }
  }

  /** Returns once no encoder feeds the stream, or the current one has fallen silent. */
  async function waitForTurn(stream: LiveStream, signal: AbortSignal): Promise<void> {
    const arrivedUs = clock.nowUs()
    limits.checkRoom(stream)
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

  function createSink(
    stream: LiveStream,
    request: ConnectionRequest,
    program: ProgramChoice | undefined,
  ): PayloadSink {
    let publication: Publication | undefined
    let isCounted = false
    const queue = new BurstQueue(
      {
        push: (payload) => publication?.push(payload),
        gap: (lostPackets) => publication?.gap(lostPackets),
        end: (reason) => {
          if (isCounted) limits.removePublisher()
          publication?.end(reason === 'closed' ? 'stopped' : reason)
        },
      },
      options.defer,
    )
    return {
      open: (connection) => {
        const encoder = asEncoder(connection, program)
        try {
          // Another encoder may have connected since the decision.
          if (stream.status === 'STOPPED' || isBusy(stream)) throw new MillraceError('STREAM_BUSY')
          limits.checkRoom(stream)
          limits.countConnection(stream, clock.nowUs())
          limits.addPublisher()
          isCounted = true
          publication = stream.publish(encoder)
        } catch (error) {
          if (!(error instanceof MillraceError)) throw error
          options.onRejected(request, error, stream)
          encoder.close()
        }
      },
      push: (payload) => queue.push(payload),
      gap: (lostPackets) => queue.gap(lostPackets),
      end: (reason) => queue.end(reason),
    }
  }

  /** Whether an encoder feeds the stream; one that is connected, but sends no media, does not. */
  function isBusy({ status, encoder }: LiveStream): boolean {
    if (status !== 'STREAMING' || encoder === undefined) return false
    return clock.nowUs() - encoder.lastPacketUs < TAKEOVER_AFTER_US
  }
}

/** @param text  untrusted */
function chooseProgram(text: string): ProgramChoice {
  const choice = parseProgramChoice(text)
  if (choice !== undefined) return choice
  const message = `program in the stream key must be ${PROGRAM_CHOICES}`
  throw new MillraceError('STREAM_KEY_MALFORMED', { message })
}
