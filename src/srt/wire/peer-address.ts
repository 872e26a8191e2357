/**
 * The peer's IP address in the handshake (draft-sharabayko-srt 3.2.1): 16 bytes, of which IPv4 uses the first four.
 * The draft gives no byte order. libsrt reverses each word (srtcore/common.cpp), so 127.0.0.1 is sent as 01 00 00 7f.
 * No receiver checks the field.
 *
 * @module
 */
import { isIPv4, isIPv6 } from 'node:net'

/** @param address  numeric, with or without zone; any other text encodes as zeros */
export function encodePeerAddress(address: string): Buffer {
  const bytes = Buffer.alloc(16)
  if (isIPv4(address)) bytes.set(address.split('.').map(Number))
  else if (isIPv6(address)) bytes.set(parseIpv6(address))
  return bytes.swap32()
}

function parseIpv6(address: string): Buffer {
  const text = address.replace(/%.*/, '').replace(/[\d.]+\.\d+$/, ipv4AsGroups)
  const [head = '', tail = ''] = text.split('::')
  const front = parseGroups(head)
  const back = parseGroups(tail)
  const bytes = Buffer.alloc(16)
  front.forEach((group, i) => bytes.writeUInt16BE(group, i * 2))
  back.forEach((group, i) => bytes.writeUInt16BE(group, 16 - (back.length - i) * 2))
  return bytes
}

function parseGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => parseInt(group, 16))
}

/** Rewrites the dotted end of `::ffff:127.0.0.1` as two groups. */
function ipv4AsGroups(dotted: string): string {
  const word = Buffer.from(dotted.split('.').map(Number)).toString('hex')
  return `${word.slice(0, 4)}:${word.slice(4)}`
}
