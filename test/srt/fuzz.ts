/**
 * Fuzzing of a listener with real callers on a hostile network: datagrams are lost, repeated, altered, or
 * replayed later or from another address, while the host decides late, sinks throw, and time jumps. Reproducible from a seed.
 *
 * @module
 */
import { RejectCode } from '../../src/srt/wire/reject-code.ts'
import { Call } from '../../src/srt/connection/call.ts'
import { Decryption } from '../../src/srt/crypto/decryption.ts'
import { Encryption } from '../../src/srt/crypto/encryption.ts'
import { Endpoint } from '../../src/srt/connection/endpoint.ts'
import { SocketGroups } from '../../src/srt/connection/socket-group.ts'
import type { Attempt } from '../../src/srt/handshake/attempt.ts'
import type { Acceptance } from '../../src/srt/handshake/handshake-responder.ts'
import type { KeyEncryptionKey } from '../../src/srt/crypto/key-encryption.ts'
import type { ListenerStats } from '../../src/srt/stats.ts'
import type { PayloadSink } from '../../src/srt/types.ts'
import { GroupType } from '../../src/srt/wire/extension.ts'
import { asMember } from '../support/group-sender.ts'
import { createRandom, type Random } from '../support/random.ts'
import { ENDPOINT_OPTIONS } from './endpoint-options.ts'
import { wholeDatagram } from './whole-datagram.ts'

export interface FuzzOutcome {
  /** Violated invariants. */
  readonly violations: readonly string[]
  readonly datagrams: number
  readonly stats: ListenerStats
}

const CALLERS = 6
const CORPUS = 200
const MAX_PENDING = 256
const MAX_ON_THE_WAY = 10_000
const MEMBERSHIP = { groupId: 0x4b21c5e2, type: GroupType.BROADCAST, weight: 1 }
const SINK_ERROR = new Error('a sink that throws')

interface Recorded {
  readonly datagram: Buffer
  readonly port: number
}

/** @param kek  what half of the callers encrypt with */
export function fuzz(seed: number, steps: number, kek: KeyEncryptionKey): FuzzOutcome {
  const random = createRandom(seed)
  const violations: string[] = []
  const corpus: Recorded[] = []
  const undecided: Attempt[] = []
  const calls: Call[] = []
  /** Datagrams are delivered after the call that sent them, as by a socket. */
  const onTheWay: (() => void)[] = []
  let nowUs = 0
  let datagrams = 0
  let callsStarted = 0

  /** Whether the callers are members of a group, though each with sequence numbers of its own. */
  const areMembers = seed % 3 === 0

  const endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    random: random.bytes,
    nowUs,
    ...(areMembers && {
      groups: { registry: new SocketGroups(random.bytes), localPort: 10_080 },
    }),
    // Losses are reported as to callers over several lines.
    ...(seed % 2 === 0 && { linesOf: () => [] }),
    host: {
      transmit: (sent, port) => {
        if (random.chance(0.2)) return
        const datagram = wholeDatagram(sent)
        const copy = random.chance(0.1) ? alter(datagram, random) : datagram
        onTheWay.push(() => calls[port % CALLERS]?.handleDatagram(copy, nowUs))
      },
      request: (attempt) => undecided.push(attempt),
      expire: (attempt) => {
        const index = undecided.indexOf(attempt)
        if (index === -1) violations.push('an attempt expired that did not wait')
        else undecided.splice(index, 1)
      },
      fail: (error) => {
        if (error !== SINK_ERROR) violations.push(describe(error))
      },
    },
  })

  const receive = (datagram: Buffer, port: number) => {
    datagrams++
    // The endpoint keeps the datagram and decrypts it in place.
    const copy = Buffer.from(datagram)
    onTheWay.push(() => endpoint.handleDatagram(copy, port, '192.0.2.1', nowUs))
  }
  const dial = () => {
    const port = 40_000 + (callsStarted++ % CALLERS)
    const place = port % CALLERS
    calls[place]?.close()
    const call = new Call({
      remoteAddress: '192.0.2.2',
      remotePort: 10_080,
      socketId: 1 + random.below(0x3ffffffe),
      streamId: 'mode=publish,rid=fuzz',
      latencyMs: 120,
      peerLatencyMs: 120,
      initialSequenceNumber: random.below(2) === 0 ? 0x7ffffff0 : random.below(2 ** 31),
      startTimestampUs: random.below(2 ** 32),
      sendBufferPackets: 256,
      maxBandwidthBps: 1e8,
      connectTimeoutUs: 3_000_000,
      idleTimeoutUs: 5_000_000,
      ...(random.chance(0.5) && {
        encryption: new Encryption({
          keyEncryptionKey: kek,
          refreshPackets: 40,
          preannouncePackets: 10,
          random: random.bytes,
        }),
      }),
      host: {
        transmit: (sent) => {
          const whole = wholeDatagram(sent)
          const datagram = areMembers ? asMember(whole, MEMBERSHIP) : whole
          corpus[random.below(CORPUS)] = { datagram, port }
          if (random.chance(0.1)) return
          receive(random.chance(0.1) ? alter(datagram, random) : datagram, port)
          if (random.chance(0.05)) receive(datagram, port)
        },
        connected: () => {},
        refused: () => {},
        ended: () => {},
        fail: (error) => violations.push(String(error)),
      },
    })
    calls[place] = call
    call.start(nowUs)
  }
  const decide = () => {
    const [attempt] = undecided.splice(random.below(undecided.length), 1)
    if (attempt === undefined) return
    const { keyMaterial } = attempt.agreement
    const decryption = keyMaterial && Decryption.unlock(kek, keyMaterial, nowUs)
    const acceptance: Acceptance = {
      sink: createSink(random, violations),
      ...(decryption && { decryption }),
    }
    endpoint.decide(attempt, random.chance(0.1) ? { reject: RejectCode.CLOSE } : acceptance, nowUs)
  }
  const pick = (): Recorded | undefined => corpus[random.below(CORPUS)]
  const actions: (() => void)[] = [
    () => (nowUs += random.below(10_000)),
    () => endpoint.tick(nowUs),
    () => calls[random.below(CALLERS)]?.tick(nowUs),
    () => calls[random.below(CALLERS)]?.send(random.bytes(1 + random.below(64)), nowUs),
    () => calls[random.below(CALLERS)]?.send(random.bytes(1 + random.below(64)), nowUs),
    decide,
    () => {
      const recorded = pick()
      if (recorded) receive(alter(recorded.datagram, random), recorded.port)
    },
    () => {
      const recorded = pick()
      if (recorded) receive(recorded.datagram, 40_000 + random.below(CALLERS))
    },
    () => receive(random.bytes(random.below(100)), random.below(65_536)),
  ]
  const rare: (() => void)[] = [
    dial,
    dial,
    () => (nowUs += random.below(6_000_000)),
    () => calls[random.below(CALLERS)]?.close(),
  ]

  try {
    for (let step = 0; step < steps; step++) {
      const choice = random.chance(0.01) ? rare : actions
      choice[random.below(choice.length)]!()
      for (const arrive of onTheWay.splice(0, 20)) arrive()
      if (onTheWay.length > MAX_ON_THE_WAY) violations.push('more datagrams are sent than received')
      if (undecided.length > MAX_PENDING) violations.push(`${undecided.length} callers wait`)
    }
    // Ten seconds of silence: all state is released.
    for (let tick = 0; tick < 1000; tick++) endpoint.tick((nowUs += 10_000))
    if (endpoint.busy) violations.push('something is kept for ever')
    if (endpoint.connectionCount !== 0) violations.push('a connection outlives its peer')
    if (undecided.length > 0) violations.push('an attempt neither decided nor expired')
  } catch (error) {
    violations.push(describe(error))
  }
  return { violations, datagrams, stats: endpoint.stats }
}

/** Sink that sometimes throws or closes, and checks the order of its calls. */
function createSink(random: Random, violations: string[]): PayloadSink {
  let state: 'new' | 'open' | 'ended' = 'new'
  let close = () => {}
  const expect = (wanted: typeof state, call: string) => {
    if (state !== wanted) violations.push(`${call} of a sink that is ${state}`)
  }
  return {
    open: (connection) => {
      expect('new', 'open')
      state = 'open'
      close = () => connection.close()
      if (random.chance(0.02)) throw SINK_ERROR
    },
    push: (payload) => {
      expect('open', 'push')
      if (payload.length > 1456) violations.push(`a payload of ${payload.length} bytes`)
      if (random.chance(0.002)) throw SINK_ERROR
      if (random.chance(0.002)) close()
    },
    gap: (lostPackets) => {
      expect('open', 'gap')
      if (!(lostPackets >= 1)) violations.push(`a gap of ${lostPackets}`)
    },
    end: () => {
      expect('open', 'end')
      state = 'ended'
      if (random.chance(0.02)) throw SINK_ERROR
    },
  }
}

/** Alters some bytes, most of them in the headers; sometimes truncates or extends the datagram. */
function alter(datagram: Buffer, random: Random): Buffer {
  const bent = Buffer.concat([datagram, random.bytes(random.chance(0.1) ? random.below(8) : 0)])
  for (let edits = 1 + random.below(4); edits > 0; edits--) {
    const end = random.chance(0.5) ? Math.min(16, bent.length) : bent.length
    if (end > 0) bent[random.below(end)] = random.chance(0.3) ? 0xff : random.below(256)
  }
  return random.chance(0.2) ? bent.subarray(0, random.below(bent.length + 1)) : bent
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
