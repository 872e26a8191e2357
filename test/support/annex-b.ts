/**
 * NAL units of an Annex B byte stream (ITU-T H.264 B.1), read without code of src.
 *
 * @module
 */

/** @returns NAL units without start codes and trailing zeros */
export function readNalUnits(bytes: Buffer): Buffer[] {
  const starts: number[] = []
  for (let at = bytes.indexOf(START); at >= 0; at = bytes.indexOf(START, at + 3)) starts.push(at)
  return starts.map((start, index) => {
    let end = starts[index + 1] ?? bytes.length
    while (end > start + 3 && bytes[end - 1] === 0) end--
    return bytes.subarray(start + 3, end)
  })
}

const START = Buffer.from([0, 0, 1])
