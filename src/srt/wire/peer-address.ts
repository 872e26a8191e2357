/**
 * The peer's IP address in the handshake (draft-sharabayko-srt 3.2.1): 16 bytes, of which IPv4 uses the first four.
 * The draft gives no byte order. libsrt reverses each word (srtcore/common.cpp), so 127.0.0.1 is sent as 01 00 00 7f.
 * Receivers do not check the field.
 *
 * @module
 */
import { parseIpAddress } from '../../binary/ip-address.ts'

/** @param address  numeric, with or without zone; any other text encodes as zeros */
export function encodePeerAddress(address: string): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.set(parseIpAddress(address))
  return bytes.swap32()
}
