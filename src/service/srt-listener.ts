/**
 * SRT listener of the service, with the admission of encoders and readers.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../timing/clock.ts'
import { MillraceError } from '../errors.ts'
import { isClustered } from '../config/complete-settings.ts'
import { parseAddressBlocks, parseAddresses, parsePortRange } from '../config/setting-types.ts'
import { createAdmission, type Admission, type AdmissionOptions } from '../ingest/admission.ts'
import { createSrtAdmission } from '../ingest/srt-admission.ts'
import type { AdmitReader } from '../egress/reader-admission.ts'
import { createListener, type Listener } from '../srt/io/listener.ts'
import type { MovedCaller } from '../srt/types.ts'
import { explainAddress } from './bind-error.ts'
import type { Settings } from './settings-in-use.ts'

interface EncoderOptions extends Pick<
  AdmissionOptions,
  'streams' | 'streamOfPort' | 'isOverloaded' | 'onRejected'
> {
  readonly settings: Settings
}

export function admitEncoders({ settings, ...options }: EncoderOptions): Admission {
  const { maxPublishers, publishFrom, srt } = settings.config
  return createAdmission({
    ...options,
    readJwtSecrets: () => settings.secrets.jwt,
    maxPublishers,
    hasPassphrase: srt.passphrase !== '',
    allowFrom: parseAddressBlocks(publishFrom),
    clock: systemClock,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  })
}

interface SrtListenerOptions {
  readonly settings: Settings
  readonly publish: Admission['admit']
  readonly read: AdmitReader
  /** Tells another node of a caller that it takes, see `Listener.expect`; rejects if that node is gone. */
  readonly move: (node: string, caller: MovedCaller) => Promise<void>
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** @throws {MillraceError} `ADDRESS_IN_USE`, or `CONFIG_INVALID` for an address that cannot be bound */
export async function openListener(options: SrtListenerOptions): Promise<Listener> {
  const { settings, publish, read, onWarning } = options
  const { srt, srtla, ingest } = settings.config
  const acceptPublisher = createSrtAdmission(publish, setImmediate)
  const listener = await createListener({
    host: parseAddresses(srt.host),
    port: srt.port,
    reusePort: srt.reusePort || ingest.workers > 1,
    latencyMs: srt.latencyMs,
    ...(srt.passphrase !== '' && { passphrase: srt.passphrase }),
    accept: async (request, signal) => {
      const { localPort, remotePort, remoteAddress, isMovable } = request
      let hasMoved = false
      const moveAway = async ({ takenBy }: MillraceError) => {
        if (takenBy === undefined || isMovable?.() !== true) return false
        const move = options.move(takenBy, { localPort, remotePort, remoteAddress })
        hasMoved = await move.then(
          () => true,
          () => false,
        )
        return hasMoved
      }
      const caller = { ...request, moveAway }
      const decision = (await read(caller)) ?? (await acceptPublisher(caller, signal))
      return hasMoved ? { isElsewhere: true } : decision
    },
    onWarning,
  }).catch(explainAddress('SRT', srt.host))
  try {
    if (srtla.port !== 0)
      await listener.open(srtla.port, true).catch(explainAddress('SRTLA', srt.host, 'SRT_HOST'))
    // In a cluster the encoder of a port may call any node, at any time.
    const range = isClustered(settings.config) ? parsePortRange(srt.streamPorts) : undefined
    for (let port = range?.first ?? 1; port <= (range?.last ?? 0); port++)
      await listener
        .open(port)
        .catch(explainAddress('SRT_STREAM', srt.host, 'SRT_HOST'))
        .catch((error: unknown) => onWarning(withoutPort(error)))
    return listener
  } catch (error) {
    await listener.close()
    throw error
  }
}

/**
 * A port that any program may have for a while must not keep a node with hundreds of them from starting.
 *
 * @returns warning about a port that is in use
 * @throws any other error
 */
function withoutPort(error: unknown): string {
  if (!(error instanceof MillraceError) || error.code !== 'ADDRESS_IN_USE') throw error
  return `This node takes no encoders at one of SRT_STREAM_PORTS until its restart: ${error.message}.`
}
