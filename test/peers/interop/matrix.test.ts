/**
 * The interop matrix: every kind of publisher into our listener, in clear and encrypted, over networks of every kind.
 */
import t from 'tap'
import { decodeExtensions } from '../../../src/srt/wire/extension.ts'
import { encryptionKeyFlag, isControl } from '../../../src/srt/wire/packet.ts'
import { requireTool } from '../support/tools.ts'
import type { Direction } from '../../support/udp-relay.ts'
import { isConclusion } from './conclusion.ts'
import {
  PAYLOAD_BYTES,
  PUBLISHERS,
  type CallEncryption,
  type Publisher,
  type PublisherName,
} from './publishers.ts'
import { difference, play, receive } from './reception.ts'

/** Payloads of 4 s at 2.1 Mbit/s. */
const PACKETS = 800

/** A new key is announced 0.7 s ahead, so that a lost KMREQ is repeated several times before the key is used. */
const REFRESH = [300, 140] as const
/** Nearly the maximum of the handshake: a busy machine has time for each attempt to repair a loss. */
const LATENCY_MS = 60_000
/** Packets on the way: fewer than a socket holds, whose reader a busy machine has held up. */
const MAX_AHEAD = 80
/** Fewer than 140, so that no burst of packets uses a key before the listener has it: three round trips are between. */
const MAX_AHEAD_REKEYED = 30
const PASSPHRASE = 'what-both-sides-know'

type Cipher = 'clear' | 'AES-128' | 'AES-192' | 'AES-256'

interface Cell {
  readonly publisher: PublisherName
  readonly cipher: Cipher
  readonly rekeys: boolean
  readonly family: 'IPv4' | 'IPv6'
  /** Loss in both directions. */
  readonly lossPercent: number
  readonly rttMs: number
}

const cell = (
  publisher: PublisherName,
  cipher: Cipher | `${Cipher}, rekeyed`,
  family: Cell['family'],
  lossPercent: number,
  rttMs: number,
): Cell => ({
  publisher,
  cipher: cipher.split(',')[0] as Cipher,
  rekeys: cipher.endsWith('rekeyed'),
  family,
  lossPercent,
  rttMs,
})

/**
 * Not the full product: any two values of publisher, cipher, loss and RTT meet in one cell, and each of them meets both
 * families.
 */
const CELLS: readonly Cell[] = [
  cell('ffmpeg', 'clear', 'IPv4', 0, 1),
  cell('ffmpeg', 'AES-128', 'IPv6', 1, 300),
  cell('ffmpeg', 'AES-192', 'IPv4', 5, 600),
  cell('ffmpeg', 'AES-256', 'IPv6', 10, 100),
  cell('srt-live-transmit', 'clear', 'IPv4', 1, 100),
  cell('srt-live-transmit', 'AES-128', 'IPv6', 0, 600),
  cell('srt-live-transmit', 'AES-192', 'IPv4', 10, 300),
  cell('srt-live-transmit', 'AES-256', 'IPv6', 5, 1),
  cell('GStreamer', 'clear', 'IPv6', 5, 300),
  cell('GStreamer', 'AES-128', 'IPv4', 10, 1),
  cell('GStreamer', 'AES-192', 'IPv6', 0, 100),
  cell('GStreamer', 'AES-256', 'IPv4', 1, 600),
  cell('our caller', 'clear', 'IPv6', 10, 600),
  cell('our caller', 'AES-128', 'IPv4', 5, 100),
  cell('our caller', 'AES-192', 'IPv6', 1, 1),
  cell('our caller', 'AES-256', 'IPv4', 0, 300),
  cell('ffmpeg', 'AES-256, rekeyed', 'IPv4', 10, 100),
  cell('ffmpeg', 'AES-128, rekeyed', 'IPv6', 0, 1),
  cell('srt-live-transmit', 'AES-192, rekeyed', 'IPv6', 5, 100),
  cell('our caller', 'AES-128, rekeyed', 'IPv4', 0, 600),
  cell('our caller', 'AES-256, rekeyed', 'IPv6', 10, 100),
]

/** Packets seen by the relay on their way to the listener. */
class Wire {
  /** KK of the data packets (draft-sharabayko-srt 3.1): 0 clear, 1 even, 2 odd. */
  readonly keyFlags = new Set<number>()
  /** KLen of the key material in CONCLUSIONs (3.2.2). */
  readonly keyLengths = new Set<number>()

  readonly tap = (direction: Direction, datagram: Buffer): void => {
    if (direction === 'backward') return
    if (!isControl(datagram)) this.keyFlags.add(encryptionKeyFlag(datagram))
    if (!isConclusion(datagram)) return
    const keyMaterial = decodeExtensions(datagram)?.keyMaterial
    if (keyMaterial !== undefined) this.keyLengths.add(keyMaterial[15]! * 4)
  }
}

const KEY_BYTES = { 'AES-128': 16, 'AES-192': 24, 'AES-256': 32 } as const

t.jobs = 8

for (const [index, { publisher, cipher, rekeys, family, ...network }] of CELLS.entries()) {
  const { lossPercent, rttMs } = network
  const encryption = cipher === 'clear' ? undefined : encryptionOf(cipher, rekeys)
  const title = `${publisher}, ${cipher}${rekeys ? ' rekeyed' : ''}, ${family}, loss ${lossPercent} %, RTT ${rttMs} ms`
  t.test(`${title}: every byte arrives`, { buffered: true }, async (t) => {
    const { tool, start }: Publisher = PUBLISHERS[publisher]
    if (tool !== undefined && !requireTool(t, tool)) return
    const wire = new Wire()
    const link = { loss: lossPercent / 100, delayMs: rttMs / 2 }
    const received = await receive(t, {
      host: family === 'IPv4' ? '127.0.0.1' : '::1',
      latencyMs: LATENCY_MS,
      ...(encryption && { passphrase: PASSPHRASE }),
      seed: index,
      forward: link,
      backward: link,
      tap: wire.tap,
    })
    const publication = start(t, { ...received.call, ...(encryption && { encryption }) })
    const maxAhead = rekeys ? MAX_AHEAD_REKEYED : MAX_AHEAD
    const arrived = (bytes: number) => received.bytes().length >= bytes
    const stream = await play(publication, PACKETS, arrived, (packet) =>
      arrived((packet - maxAhead + 1) * PAYLOAD_BYTES),
    )
    t.equal(difference(received.bytes(), stream), '', publication.output())
    t.equal(received.gaps(), 0)
    t.equal(received.connections.length, 1)
    t.match(received.connections[0]!.stats(), { pktRcvDropTotal: 0, pktRcvUndecryptTotal: 0 })
    if (lossPercent > 0) t.ok(received.relay.counters('forward').lost > 0)
    t.strictSame(wire.keyLengths, new Set(encryption && [encryption.keyBytes]))
    t.strictSame(wire.keyFlags, new Set(rekeys ? [1, 2] : [encryption === undefined ? 0 : 1]))
  })
}

function encryptionOf(cipher: Exclude<Cipher, 'clear'>, rekeys: boolean): CallEncryption {
  const keyBytes = KEY_BYTES[cipher]
  return { passphrase: PASSPHRASE, keyBytes, ...(rekeys && { refresh: REFRESH }) }
}
