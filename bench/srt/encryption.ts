/**
 * What AES costs a packet: ours, against a cipher of `node:crypto` for each packet.
 *
 * @module
 */
import { createDecipheriv, randomBytes } from 'node:crypto'
import { Keystream } from '../../src/srt/crypto/keystream.ts'

const PAYLOAD_BYTES = 1316
const HEADER_BYTES = 16
const PACKETS = 300_000
const ROUNDS = 5
/** Their keystreams do not fit in the first caches of a core. */
const CONNECTIONS = 100

/** As a socket hands them out: a buffer each. */
const payloads = Array.from({ length: 1000 }, () =>
  Buffer.from(new ArrayBuffer(HEADER_BYTES + PAYLOAD_BYTES)).subarray(HEADER_BYTES),
)

/** @returns microseconds of CPU a packet, of the best round */
function measure(decrypt: (payload: Buffer, sequence: number) => void): number {
  let best = Infinity
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < PACKETS; i++) decrypt(payloads[i % payloads.length]!, round * PACKETS + i)
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / PACKETS)
  }
  return best
}

for (const keyBytes of [16, 32]) {
  const key = randomBytes(keyBytes)
  const salt = randomBytes(16)
  const keystream = new Keystream(key, salt)
  const inOrder = measure((payload, sequence) => keystream.apply(payload, sequence, false))
  const many = Array.from({ length: CONNECTIONS }, () => new Keystream(key, salt))
  const inTurn = measure((payload, packet) =>
    many[packet % CONNECTIONS]!.apply(payload, Math.floor(packet / CONNECTIONS), false),
  )
  const alone = measure((payload, sequence) => keystream.apply(payload, sequence + 1e9, true))
  const single = measure((payload, sequence) => {
    const iv = Buffer.from(salt)
    iv.writeUInt32BE((salt.readUInt32BE(10) ^ sequence) >>> 0, 10)
    iv.writeUInt16BE(0, 14)
    createDecipheriv(`aes-${keyBytes * 8}-ctr`, key, iv).update(payload)
  })
  const us = (value: number) => `${value.toFixed(2)} us`
  process.stdout.write(
    `AES-${keyBytes * 8}  in order ${us(inOrder)}  of ${CONNECTIONS} connections in turn ${us(inTurn)}  retransmitted ${us(alone)}  a cipher each ${us(single)}\n`,
  )
}
