/**
 * QR codes of URLs, for phones.
 *
 * @module
 */
import { encode } from 'uqr'
import type { QrCode } from '../web/dashboard/wire.ts'

/** Width of the quiet zone in modules (ISO/IEC 18004 section 6.3.8). */
const QUIET_MODULES = 4

/** @returns undefined for a text beyond the capacity of a QR code */
export function qrCodeOf(text: string): QrCode | undefined {
  try {
    // To compare all masks takes 12 ms for a URL with a passphrase, one of them 3 ms.
    const { size, data } = encode(text, { ecc: 'L', border: QUIET_MODULES, maskPattern: 0 })
    const squares = data.flatMap((row, y) =>
      row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
    )
    return { size, path: squares.join('') }
  } catch {
    return undefined
  }
}
