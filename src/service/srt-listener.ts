/**
 * SRT listener of the service, with the admission of encoders.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import { parseAddressBlocks, parseAddresses } from '../config/setting-types.ts'
import { createAdmission, type AdmissionOptions } from '../ingest/admission.ts'
import { createSrtAdmission } from '../ingest/srt-admission.ts'
import { createListener, type Listener } from '../srt/io/listener.ts'
import { explainAddress } from './bind-error.ts'
import type { Settings } from './settings.ts'

export interface SrtListenerOptions extends Pick<
  AdmissionOptions,
  'streams' | 'isOverloaded' | 'onRejected'
> {
  readonly settings: Settings
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** @throws {MillraceError} `ADDRESS_IN_USE`, or `CONFIG_INVALID` for an address that cannot be bound */
export function openListener(options: SrtListenerOptions): Promise<Listener> {
  const { settings, onWarning, ...admission } = options
  const { srt, maxPublishers, publishFrom } = settings.config
  const admit = createAdmission({
    ...admission,
    readJwtSecrets: () => settings.secrets.jwt,
    maxPublishers,
    allowFrom: parseAddressBlocks(publishFrom),
    clock: systemClock,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    defer: setImmediate,
  })
  return createListener({
    host: parseAddresses(srt.host),
    port: srt.port,
    latencyMs: srt.latencyMs,
    ...(srt.passphrase !== '' && { passphrase: srt.passphrase }),
    accept: createSrtAdmission(admit),
    onWarning,
  }).catch(explainAddress('SRT', srt.host))
}
