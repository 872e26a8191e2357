/**
 * program_config_element of AAC (ISO/IEC 14496-3 4.4.1.1), as a raw_data_block begins with it.
 *
 * @module
 */
import { BitWriter } from './nal-builder.ts'

const ID_PCE = 5

/**
 * @param elements  those in front and, behind a space, those in the back: `1` of one channel, `2` of two, `L` of low frequencies
 * @param options.side  those at the side
 */
export function programConfig(
  elements: string,
  { side = '', coupling = 0 }: { side?: string | undefined; coupling?: number } = {},
): Buffer {
  const [front = '', back = ''] = elements.replaceAll('L', '').split(' ')
  const lows = elements.match(/L/g)?.length ?? 0
  const bits = new BitWriter().u(3, ID_PCE).u(4, 0).u(2, 1).u(4, 3)
  bits.u(4, front.length).u(4, side.length).u(4, back.length)
  bits.u(2, lows).u(3, 0).u(4, coupling).u(3, 0)
  for (const [tag, element] of (front + side + back).split('').entries())
    bits.u(1, element === '2' ? 1 : 0).u(4, tag)
  for (let tag = 0; tag < lows; tag++) bits.u(4, tag)
  for (let tag = 0; tag < coupling; tag++) bits.u(5, tag)
  return Buffer.concat([bits.bytes, Buffer.alloc(1)])
}
