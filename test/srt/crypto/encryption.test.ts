/**
 * Keys and keystreams, against datagrams captured from libsrt 1.5.1, against the
 * standards' own examples, and against noise.
 */
import { createCipheriv } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { addToSequence, MAX_SEQUENCE_NUMBER } from '../../../src/srt/wire/counters.ts'
import { Decryption } from '../../../src/srt/crypto/decryption.ts'
import { Encryption } from '../../../src/srt/crypto/encryption.ts'
import {
  checkPassphrase,
  deriveKey,
  KeyDeriver,
  unwrapKeys,
  wrapKeys,
} from '../../../src/srt/crypto/key-encryption.ts'
import { Keystream } from '../../../src/srt/crypto/keystream.ts'
import {
  decodeKeyMaterial,
  decodeKmState,
  encodeKeyMaterial,
  KeyFlag,
  KmCipher,
  KmState,
} from '../../../src/srt/wire/key-material.ts'
import { encryptionKeyFlag, HEADER_BYTES, writeDataHeader } from '../../../src/srt/wire/packet.ts'
import { createRandom } from '../../support/random.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(/[\s|]/g, ''), 'hex')

/** Key material and a packet of ffmpeg 5.1. */
const FFMPEG = {
  passphrase: 'correct horse battery',
  request: hex(`12202901 00000000 02000200 00000404 | 6c6ecdcb908aef59b6587b5339025e74
    9055dde95ed74697 b7214b77a1831ebe6fe523a00be598d4`),
  packet: hex(`49e54087 e8000001 00024384 30bbb14a
    eb1d9aeb1b00516083107dfa322e41ae5df1673d99212c8be695cadfa749285e`),
  payload: hex('474011100042f0250001c10000ff01ff0001fc80144812010646466d70656709'),
}

/** Key material of srt-live-transmit 1.5.1: its first key, and both keys before it switched to the second. */
const TRANSMIT = {
  passphrase: 'correct-horse-battery',
  request: hex(`12202901 00000000 02000200 00000408 | b0603b5743af4fa2c874dd4166966662
    ab1e9f999c8216ca 8be512c91071a6a4a555a0c77df674c10aa2bd071b9e1b3ddcce4e73de1485c5`),
  packet: hex(`660ff87c c8000001 0016e6cd 18769327
    184c5bdae4f766f202ad187b13a7505910d69de98edda8c7a41bf50fe136326d`),
  payload: hex('474011100042f0220001c10000ff01ff0001fc8011480f01084d696c6c726163'),
  refresh: hex(`12202903 00000000 02000200 00000408 | b0603b5743af4fa2c874dd4166966662
    b294f7d27e2f1319 811945f9a5aeb16e0fef0ec1f576cdd441c1fdba748b58c93e59bdc9249a2072
    ea66779ef44ab81dcb67e103cacba3acfb4f1edb0c5ab2f11aa42f6bc1ba52d7`),
  oddPacket: hex(`660ff9ad d0000132 002ed59c 18769327
    9b6da9b19712860acbafe8688e6b9a3a089d8cdb9fca4f3054f03a4fc6faae50`),
  oddPayload: hex('47010016c04b077c48e392e5f6fb6ec5a26a9688daf08272b33c63f76e1ca3a4'),
}

/** Reference: a cipher of `node:crypto` for each packet. */
function cipherPacket(key: Buffer, salt: Buffer, sequence: number, payload: Buffer): Buffer {
  const iv = Buffer.alloc(16)
  salt.copy(iv, 0, 0, 14)
  iv.writeUInt32BE((iv.readUInt32BE(10) ^ sequence) >>> 0, 10)
  return createCipheriv(`aes-${key.length * 8}-ctr`, key, iv).update(payload)
}

function dataPacket(sequence: number, payload: Buffer = Buffer.alloc(1316, 0x47)): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + payload.length)
  writeDataHeader(datagram, { sequence, message: 1, timestampUs: 0, socketId: 5 })
  datagram.set(payload, HEADER_BYTES)
  return datagram
}

async function unlock({ passphrase, request }: { passphrase: string; request: Buffer }) {
  const material = decodeKeyMaterial(request)!
  const kek = await deriveKey(passphrase, material.salt, material.keyBytes)
  return Decryption.unlock(kek, material, 0)
}

t.test('decodes key material of libsrt (3.2.2)', async (t) => {
  t.match(decodeKeyMaterial(FFMPEG.request), {
    keys: KeyFlag.EVEN,
    cipher: KmCipher.AES_CTR,
    keyBytes: 16,
    salt: hex('6c6ecdcb908aef59b6587b5339025e74'),
    wrappedKeys: FFMPEG.request.subarray(32),
    message: FFMPEG.request,
  })
  const both = decodeKeyMaterial(TRANSMIT.refresh)!
  t.match(both, { keys: KeyFlag.BOTH, keyBytes: 32 })
  t.equal(both.wrappedKeys.length, 8 + 64)
  for (const { request } of [FFMPEG, TRANSMIT]) {
    t.strictSame(encodeKeyMaterial(decodeKeyMaterial(request)!), request)
  }
})

t.test('rejects key material of a wrong length or with an invalid field', async (t) => {
  for (const good of [FFMPEG.request, TRANSMIT.request, TRANSMIT.refresh]) {
    for (let length = 0; length < good.length; length++) {
      if (decodeKeyMaterial(good.subarray(0, length))) t.fail(`cut to ${length}`)
    }
    for (const more of [1, 4, 16, 24, 32]) {
      t.notOk(decodeKeyMaterial(Buffer.concat([good, Buffer.alloc(more)])), `${more} more`)
    }
    for (const [at, value, field] of [
      [0, 0x13, 'type'],
      [0, 0x22, 'version'],
      [1, 0x21, 'signature'],
      [2, 0x28, 'signature'],
      [3, 0, 'no key'],
      [3, good[3] === 3 ? 1 : 3, 'another number of keys'],
      [7, 1, 'key index'],
      [9, 1, 'authentication, which CTR has not'],
      [10, 1, 'stream encapsulation'],
      [14, 3, 'short salt'],
      [14, 0, 'no salt'],
      [15, 0, 'no key length'],
      [15, 5, 'a key length that AES does not know'],
      [15, 255, 'a long key'],
      [15, good[15] === 6 ? 4 : 6, 'another key length'],
    ] as const) {
      const bent = Buffer.from(good)
      bent[at] = value
      t.notOk(decodeKeyMaterial(bent), field)
    }
  }
})

t.test('rejects key material with a key length that AES lacks', async (t) => {
  for (const keyBytes of [4, 8, 12, 20, 28, 36, 64]) {
    const message = encodeKeyMaterial({
      keys: KeyFlag.EVEN,
      keyBytes: keyBytes as 16,
      salt: Buffer.alloc(16),
      wrappedKeys: Buffer.alloc(8 + keyBytes),
    })
    t.equal(decodeKeyMaterial(message), undefined, `${keyBytes} bytes`)
  }
})

t.test('decodes key material for AES-GCM, so that it can be rejected (libsrt 1.5.2)', async (t) => {
  const gcm = Buffer.from(FFMPEG.request)
  gcm[8] = KmCipher.AES_GCM
  gcm[9] = 1
  t.equal(decodeKeyMaterial(gcm)?.cipher, KmCipher.AES_GCM)
})

t.test('decodes a refusing KMRSP as one little-endian word (libsrt)', async (t) => {
  t.equal(decodeKmState(hex('04000000')), KmState.BAD_SECRET)
  t.equal(decodeKmState(hex('03000000')), KmState.NO_SECRET)
  for (const bytes of [0, 3, 5, 8, 56]) t.equal(decodeKmState(Buffer.alloc(bytes)), undefined)
})

t.test('decodes its own key material, and throws for no bytes', async (t) => {
  const noise = fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes))
  const bent = fc
    .tuple(fc.constantFrom(FFMPEG.request, TRANSMIT.refresh), fc.nat(120), fc.nat(255), fc.nat(9))
    .map(([good, at, value, cut]) => {
      const message = Buffer.from(good.subarray(0, good.length - cut))
      if (at < message.length) message[at] = value
      return message
    })
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.oneof(noise, bent), (message) => {
        const material = decodeKeyMaterial(message)
        if (material === undefined) return true
        const keys = material.keys === KeyFlag.BOTH ? 2 : 1
        return message.length === 40 + keys * material.keyBytes
      }),
      { numRuns: 5000 },
    ),
  )
})

t.test('wraps keys as in the examples of RFC 3394', async (t) => {
  const key = hex('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f')
  const data = hex('00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f')
  for (const [keyBytes, dataBytes, wrapped] of [
    [16, 16, '1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5'],
    [24, 16, '96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d'],
    [32, 16, '64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7'],
    [24, 24, '031d33264e15d33268f24ec260743edce1c6c7ddee725a936ba814915c6762d2'],
    [32, 24, 'a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1'],
    [32, 32, '28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21'],
  ] as const) {
    const kek = { key: key.subarray(0, keyBytes), salt: Buffer.alloc(16) }
    const keys = data.subarray(0, dataBytes)
    t.strictSame(wrapKeys(kek, keys), hex(wrapped))
    t.strictSame(unwrapKeys(kek, hex(wrapped)), keys)
    const other = { ...kek, key: Buffer.alloc(keyBytes) }
    t.equal(unwrapKeys(other, hex(wrapped)), undefined, 'another key')
    const bent = hex(wrapped)
    bent[bent.length - 1]! ^= 1
    t.equal(unwrapKeys(kek, bent), undefined, 'one bit of it')
  }
})

t.test('accepts passphrases of 10 to 80 bytes, in any characters', async (t) => {
  for (const good of ['0123456789', 'x'.repeat(80), 'é'.repeat(5), '🔑🔑🔑']) {
    t.doesNotThrow(() => checkPassphrase(good))
  }
  for (const bad of ['', '012345678', 'x'.repeat(81), 'é'.repeat(41)]) {
    t.throws(() => checkPassphrase(bad), { name: 'RangeError', message: /10 to 80 bytes/ })
    await t.rejects(deriveKey(bad, Buffer.alloc(16), 16), RangeError)
  }
  t.throws(() => checkPassphrase('short one'), { message: /^((?!short one).)*$/ }, 'not repeated')
})

t.test('derives keys of many callers a few at a time, and caches them', async (t) => {
  const deriver = new KeyDeriver()
  const { signal } = new AbortController()
  setMaxListeners(0, signal)
  const random = createRandom(1)
  const salts = Array.from({ length: 20 }, () => random.bytes(16))
  const derive = (salt: Buffer) => deriver.derive('0123456789', salt, 16, signal)
  const keys = await Promise.all(salts.map(derive))
  t.strictSame(keys[7], await deriveKey('0123456789', salts[7]!, 16))
  t.equal(new Set(keys.map(({ key }) => key.toString('hex'))).size, 20)
  t.equal(await derive(salts[7]!), keys[7], 'the same object')
  t.not(await deriver.derive('0123456789', salts[7]!, 32, signal), keys[7])
  t.not(await deriver.derive('9876543210', salts[7]!, 16, signal), keys[7])
  await t.rejects(deriver.derive('short', salts[0]!, 16, signal), RangeError)
})

t.test('an aborted derivation does not use up a turn', async (t) => {
  const deriver = new KeyDeriver()
  const random = createRandom(2)
  const controllers = Array.from({ length: 12 }, () => new AbortController())
  const outcomes = controllers.map(({ signal }) =>
    deriver.derive('0123456789', random.bytes(16), 16, signal),
  )
  for (const controller of controllers.slice(4, 8)) controller.abort(new Error('too late'))
  const settled = await Promise.allSettled(outcomes)
  t.strictSame(
    settled.map(({ status }) => status),
    [4, 4, 4].flatMap((count, i) => Array(count).fill(i === 1 ? 'rejected' : 'fulfilled')),
  )
})

t.test('decrypts packets of ffmpeg, AES-128', async (t) => {
  const decryption = await unlock(FFMPEG)
  const packet = Buffer.from(FFMPEG.packet)
  t.ok(decryption!.open(packet))
  t.strictSame(packet.subarray(16), FFMPEG.payload)
  t.strictSame(packet.subarray(0, 16), FFMPEG.packet.subarray(0, 16))
})

t.test('decrypts packets of srt-live-transmit, AES-256, even and odd key', async (t) => {
  const decryption = (await unlock(TRANSMIT))!
  const odd = Buffer.from(TRANSMIT.oddPacket)
  t.notOk(decryption.open(odd), 'the odd key is not known yet')
  t.strictSame(odd, TRANSMIT.oddPacket, 'and the packet as it was')
  t.ok(decryption.refresh(TRANSMIT.refresh, 0x660ff87d, 0))
  for (const [packet, payload] of [
    [TRANSMIT.oddPacket, TRANSMIT.oddPayload],
    [TRANSMIT.packet, TRANSMIT.payload],
  ] as const) {
    const datagram = Buffer.from(packet)
    t.ok(decryption.open(datagram))
    t.strictSame(datagram.subarray(16), payload)
  }
})

t.test('rejects another passphrase, and key material with one flipped bit', async (t) => {
  t.equal(await unlock({ ...FFMPEG, passphrase: 'correct horse bakery' }), undefined)
  const request = Buffer.from(FFMPEG.request)
  request[50]! ^= 1
  t.equal(await unlock({ ...FFMPEG, request }), undefined)
})

t.test('rejects packets in clear, and with both key flags', async (t) => {
  const decryption = (await unlock(FFMPEG))!
  for (const flags of [0, 3]) {
    const datagram = Buffer.from(FFMPEG.packet)
    datagram[4] = (datagram[4]! & ~0x18) | (flags << 3)
    const before = Buffer.from(datagram)
    t.notOk(decryption.open(datagram))
    t.strictSame(datagram, before)
  }
})

t.test(
  'a keystream equals AES-CTR by sequence number, in any order and length (6.2)',
  async (t) => {
    const random = createRandom(7)
    const packets = fc.array(
      fc.record({
        step: fc.oneof(fc.constant(1), fc.integer({ min: -40, max: 40 }), fc.integer()),
        length: fc.oneof(fc.constant(1316), fc.nat(1456)),
        isLone: fc.boolean(),
        offset: fc.nat(8),
      }),
      { maxLength: 60 },
    )
    const first = fc.oneof(fc.nat(MAX_SEQUENCE_NUMBER), fc.constant(MAX_SEQUENCE_NUMBER - 10))
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(fc.constantFrom(16, 24, 32), first, packets, (keyBytes, from, flight) => {
          const key = random.bytes(keyBytes)
          const salt = random.bytes(16)
          const keystream = new Keystream(key, salt)
          let sequence = from
          return flight.every(({ step, length, isLone, offset }) => {
            sequence = addToSequence(sequence, step)
            const payload = Buffer.alloc(offset + length, 0x5a).subarray(offset)
            const expected = cipherPacket(key, salt, sequence, payload)
            keystream.apply(payload, sequence, isLone)
            return payload.equals(expected)
          })
        }),
        { numRuns: 200 },
      ),
    )
  },
)

/** Key material for the connection that `TRANSMIT` opened. */
async function createRefresher() {
  const material = decodeKeyMaterial(TRANSMIT.request)!
  const kek = await deriveKey(TRANSMIT.passphrase, material.salt, 32)
  const decryption = Decryption.unlock(kek, material, 0)!
  const message = (keys: KeyFlag, bytes: Buffer, salt: Buffer = material.salt) =>
    encodeKeyMaterial({
      keys,
      salt,
      keyBytes: (bytes.length / (keys === KeyFlag.BOTH ? 2 : 1)) as 32,
      wrappedKeys: wrapKeys(kek, bytes),
    })
  /** Whether a packet encrypted with that key can be decrypted. */
  const reads = (flag: 1 | 2, key: Buffer, sequence = 9) => {
    const payload = Buffer.alloc(100, 0x47)
    const datagram = dataPacket(sequence, cipherPacket(key, material.salt, sequence, payload))
    datagram[4]! |= flag << 3
    return decryption.open(datagram) && datagram.subarray(16).equals(payload)
  }
  return { decryption, message, reads }
}

const [A, B, C] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]

t.test('adopts a new even key, odd key or both after the handshake (6.1.6)', async (t) => {
  const { decryption, message, reads } = await createRefresher()
  const first = message(KeyFlag.BOTH, Buffer.concat([A, B]))
  t.ok(decryption.refresh(first, 0, 0))
  t.ok(reads(1, A) && reads(2, B))
  t.ok(decryption.refresh(first, 0, 0), 'again, and nothing changes')
  t.ok(reads(1, A) && reads(2, B))
  t.ok(decryption.refresh(message(KeyFlag.EVEN, C), 0, 0))
  t.ok(reads(1, C) && reads(2, B), 'the other stays')
  t.ok(decryption.refresh(message(KeyFlag.ODD, A), 0, 0))
  t.ok(reads(1, C) && reads(2, A))
})

t.test('late key material does not restore the old key', async (t) => {
  const { decryption, message, reads } = await createRefresher()
  const older = message(KeyFlag.BOTH, Buffer.concat([A, B]))
  t.ok(decryption.refresh(older, 0, 0))
  t.ok(decryption.refresh(message(KeyFlag.BOTH, Buffer.concat([C, B])), 0, 0))
  t.notOk(decryption.refresh(older, 0, 0))
  const reserved = Buffer.from(older)
  reserved[12] = 1
  t.notOk(decryption.refresh(reserved, 0, 0), 'rejects another header')
  t.ok(reads(1, C) && reads(2, B))
})

t.test('decrypts a late packet under a key that has been replaced', async (t) => {
  for (const changedAt of [2000, 5]) {
    const { decryption, message, reads } = await createRefresher()
    t.ok(decryption.refresh(message(KeyFlag.BOTH, Buffer.concat([A, B])), 0, 0))
    t.ok(decryption.refresh(message(KeyFlag.BOTH, Buffer.concat([C, B])), changedAt, 0))
    const before = addToSequence(changedAt, -1)
    const longBefore = addToSequence(changedAt, -1000)
    t.ok(reads(1, A, before) && reads(1, A, longBefore))
    t.ok(reads(1, C, changedAt) && reads(1, C, changedAt + 5000))
    t.notOk(reads(1, A, changedAt), 'no key is used for two times')
    t.ok(reads(2, B, before) && reads(2, B, changedAt), 'the other stays')
    t.ok(reads(1, C, changedAt + 2 ** 24 + 1))
    t.ok(reads(1, C, before), 'nothing comes as late as that')
  }
})

t.test('a failed key refresh changes nothing (CVE-2026-55869)', async (t) => {
  const { decryption, message, reads } = await createRefresher()
  t.ok(decryption.refresh(message(KeyFlag.BOTH, Buffer.concat([A, B])), 0, 0))
  const good = message(KeyFlag.BOTH, Buffer.concat([C, C]))
  const bend = (at: number, value: number) => {
    const bent = Buffer.from(good)
    bent[at] = value
    return bent
  }
  const failing: [string, Buffer][] = [
    ['cut', good.subarray(0, -1)],
    ['without keys', good.subarray(0, 32)],
    ['empty', Buffer.alloc(0)],
    ['longer', Buffer.concat([good, Buffer.alloc(16)])],
    ['of a key length that overruns it', bend(15, 63)],
    ['of a salt length that overruns it', bend(14, 255)],
    ['without a key flag', bend(3, 0)],
    ['in GCM', bend(8, 4)],
    ['without a cipher', bend(8, 0)],
    ['wrapped with another key', bend(40, good[40]! ^ 1)],
    ['with another salt', message(KeyFlag.BOTH, Buffer.concat([C, C]), Buffer.alloc(16))],
    ['with shorter keys', message(KeyFlag.BOTH, Buffer.alloc(32))],
    ['a refusal', hex('04000000')],
  ]
  failing.forEach(([name, bad], index) => {
    t.notOk(decryption.refresh(bad, 0, index * 1e6), name)
    if (!(reads(1, A) && reads(2, B))) t.fail(`${name} changed a key`)
  })
})

t.test('limits key material to ten messages at once, then ten a second', async (t) => {
  const { decryption } = await createRefresher()
  const answered = (nowUs: number, requests: number) => {
    let count = 0
    for (let i = 0; i < requests; i++) {
      if (decryption.refresh(TRANSMIT.request, 0, nowUs)) count++
    }
    return count
  }
  t.equal(answered(0, 100), 10)
  t.equal(answered(99_999, 100), 0)
  t.equal(answered(100_000, 100), 1)
  t.equal(answered(450_000, 100), 3)
  t.equal(answered(500_000, 100), 1, 'the rest of a tenth is not lost')
  t.equal(answered(60_000_000, 100), 10)
})

/** Both sides of one connection, without a network. */
async function createPair(refreshPackets: number, preannouncePackets: number, keyBytes = 16) {
  const random = createRandom(4)
  const kek = await deriveKey('0123456789', random.bytes(16), keyBytes as 16)
  const encryption = new Encryption({
    keyEncryptionKey: kek,
    refreshPackets,
    preannouncePackets,
    random: random.bytes,
  })
  const material = decodeKeyMaterial(encryption.keyMaterial)!
  const decryption = Decryption.unlock(kek, material, 0)!
  let sequence = 0
  return {
    encryption,
    decryption,
    sent: () => sequence,
    /** Encrypts and decrypts `packets` packets; @returns their key flags */
    send(t: Test, packets: number): number[] {
      return Array.from({ length: packets }, () => {
        const datagram = dataPacket(sequence++)
        const clear = Buffer.from(datagram.subarray(HEADER_BYTES))
        const header = datagram.subarray(0, HEADER_BYTES)
        datagram.set(encryption.seal(header, clear), HEADER_BYTES)
        const flag = encryptionKeyFlag(datagram)
        if (datagram.subarray(HEADER_BYTES).equals(clear)) t.fail('sent in clear')
        if (!decryption.open(datagram)) t.fail(`packet ${sequence} cannot be read`)
        if (!datagram.subarray(HEADER_BYTES).equals(clear)) t.fail(`packet ${sequence} is noise`)
        return flag
      })
    },
  }
}

const flags = (list: number[]) => [...new Set(list)].join()

t.test(
  'a sender changes keys after the refresh interval, once the peer has confirmed (6.1.6)',
  async (t) => {
    for (const keyBytes of [16, 24, 32]) {
      const { encryption, decryption, send, sent } = await createPair(100, 20, keyBytes)
      t.equal(encryption.keyBytes, keyBytes)
      t.equal(flags(send(t, 79)), '1')
      for (let round = 0; round < 4; round++) {
        const [current, next] = round % 2 === 0 ? ['1', '2'] : ['2', '1']
        t.equal(encryption.takeRequest(0, 0), undefined, 'not yet')
        t.equal(flags(send(t, 1)), current)
        const request = encryption.takeRequest(0, 0)!
        t.equal(decodeKeyMaterial(request)!.keys, KeyFlag.BOTH)
        t.ok(decryption.refresh(request, sent(), round * 1e6))
        encryption.handleResponse(request)
        t.equal(encryption.takeRequest(1e6, 0), undefined, 'agreed')
        t.equal(flags(send(t, 20)), current, 'the peer knows, and it is not time yet')
        t.equal(flags(send(t, 79)), next)
      }
    }
  },
)

t.test('a sender sends ten KMREQs to a peer that never confirms, and keeps its key', async (t) => {
  const { encryption, decryption, send, sent } = await createPair(100, 20)
  send(t, 80)
  const rttUs = 20_000
  const requests: Buffer[] = []
  for (let nowUs = 0; nowUs < 1e6; nowUs += 10_000) {
    const request = encryption.takeRequest(nowUs, rttUs)
    if (request) requests.push(request)
  }
  t.equal(requests.length, 10)
  t.equal(new Set(requests.map((each) => each.toString('hex'))).size, 1)
  t.equal(flags(send(t, 99)), '1', 'long past the time')
  t.equal(encryption.takeRequest(2e6, rttUs), undefined)
  encryption.handleResponse(requests[0]!)
  t.equal(flags(send(t, 1)), '1', 'an answer to what was given up')
  const again = encryption.takeRequest(2e6, rttUs)!
  t.ok(decryption.refresh(again, sent(), 2e6))
  encryption.handleResponse(again)
  t.equal(flags(send(t, 1)), '2', 'requested again later, it is confirmed and used')
})

t.test('sends KMREQs one and a half round trips apart', async (t) => {
  const { encryption, send } = await createPair(100, 20)
  send(t, 80)
  const sentAt: number[] = []
  for (let nowUs = 0; nowUs < 1e6; nowUs += 5000) {
    if (encryption.takeRequest(nowUs, 100_000)) sentAt.push(nowUs)
  }
  t.strictSame(sentAt.slice(0, 4), [0, 150_000, 300_000, 450_000])
})

t.test('an unsolicited or refusing KMRSP changes nothing (CVE-2026-55868)', async (t) => {
  const { encryption, send } = await createPair(100, 20)
  encryption.handleResponse(encryption.keyMaterial)
  send(t, 80)
  const request = encryption.takeRequest(0, 0)!
  for (const bad of [
    Buffer.alloc(0),
    hex('00000000'),
    hex('04000000'),
    hex('00000004'),
    request.subarray(0, -1),
    Buffer.concat([request, Buffer.alloc(4)]),
    encryption.keyMaterial,
  ]) {
    encryption.handleResponse(bad)
  }
  t.equal(flags(send(t, 100)), '1')
  t.ok(encryption.takeRequest(1, 0), 'still asking')
})
