/**
 * Accept hook of the SRT listener: admission by stream key, and the connection as the encoder of a stream.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import type { AcceptDecision, ConnectionRequest } from '../srt/types.ts'
import type { Admit } from './admission.ts'
import { asEncoder } from './srt-encoder.ts'

/** @returns an accept hook that turns every refusal into a reject code and throws only programmer errors */
export function createSrtAdmission(admit: Admit) {
  return async (request: ConnectionRequest, signal: AbortSignal): Promise<AcceptDecision> => {
    const { streamId: streamKey, remoteAddress, remotePort } = request
    try {
      const remote = `${remoteAddress}:${remotePort}`
      const admitted = await admit({ streamKey, address: remoteAddress, remote }, signal)
      const { passphrase, latencyMs } = admitted
      return {
        sink: {
          open: (connection) => admitted.open(asEncoder(connection, admitted)),
          push: (payload) => admitted.push(payload),
          gap: (lostPackets) => admitted.gap(lostPackets),
          end: (reason) => admitted.end(reason === 'closed' ? 'stopped' : reason),
        },
        onRefused: (error) => admitted.refuse(error),
        ...(passphrase !== undefined && { passphrase }),
        ...(latencyMs !== undefined && { latencyMs }),
      }
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      return { reject: error.rejectCode }
    }
  }
}
