/**
 * Warning of stream keys that expire. A connection outlives its key, but an encoder that has to connect again is refused.
 *
 * Sans-IO: `observe` takes the time, about 4 times a second.
 *
 * @module
 */
import type { EncoderSource } from '../api/records.ts'
import type { WarningFact } from '../diagnosis/warnings.ts'
import type { Encoder } from './publication.ts'

/** Time before the expiry of a key from which on its encoder is warned of. */
const KEY_EXPIRING_SEC = 600

/** The stream key of a connected encoder, which expires soon. */
export interface ExpiringKey {
  readonly source: EncoderSource
  readonly expiresAt: Date
}

/** Watch over the keys of the encoders of a stream. */
export class KeyExpiry {
  readonly #onExpiring: (key: ExpiringKey) => void
  /** Expiries of the keys that were announced last. */
  readonly #announcedMs = new Map<EncoderSource, number>()

  /** @param onExpiring  called once for each key */
  constructor(onExpiring: (key: ExpiringKey) => void) {
    this.#onExpiring = onExpiring
  }

  /** @returns fact for the warning about the key of a connected encoder; none until 10 minutes before it expires */
  observe({ source = 'main', keyExpiresAtMs }: Encoder, wallMs: number): readonly WarningFact[] {
    if (keyExpiresAtMs === undefined) return []
    const leftSec = (keyExpiresAtMs - wallMs) / 1000
    if (leftSec > KEY_EXPIRING_SEC) return []
    if (keyExpiresAtMs !== this.#announcedMs.get(source)) {
      this.#announcedMs.set(source, keyExpiresAtMs)
      this.#onExpiring({ source, expiresAt: new Date(keyExpiresAtMs) })
    }
    return [{ code: 'KEY_EXPIRING', leftSec }]
  }
}
