/**
 * Admission of encoders for the accept hook of the SRT listener: asks `admission.ts`, which decides by the stream key, and
 * gives the payloads their way to the stream.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import type { AcceptDecision, ConnectionRequest } from '../srt/types.ts'
import type { Admission, PublishRequest } from './admission.ts'
import { BurstQueue } from './burst-queue.ts'

/**
 * @param defer  calls a function in a later turn of the event loop
 * @returns what the hook answers an encoder: it turns every refusal into a reject code, and throws only programmer errors
 */
export function createSrtAdmission(admit: Admission['admit'], defer: (act: () => void) => void) {
  return async (
    request: ConnectionRequest & Pick<PublishRequest, 'moveAway'>,
    signal: AbortSignal,
  ): Promise<AcceptDecision> => {
    const { streamId: streamKey, remoteAddress: address, remotePort, localPort: port } = request
    const { isJoining = false, moveAway } = request
    const checkEncryption = async (passphrase?: string) => {
      const error = await request.verifyEncryption(passphrase)
      if (error !== undefined) throw new MillraceError(error.code)
    }
    try {
      const remote = `${address}:${remotePort}`
      const caller = { streamKey, port, address, remote, isJoining, moveAway, checkEncryption }
      const publisher = await admit(caller, signal)
      const { passphrase, latencyMs } = publisher
      return {
        sink: new BurstQueue(publisher, defer),
        onRefused: ({ code }) => publisher.refuse(new MillraceError(code)),
        ...(passphrase !== undefined && { passphrase }),
        ...(latencyMs !== undefined && { latencyMs }),
      }
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      return { reject: error.rejectCode }
    }
  }
}
