/**
 * Hostile readers over SRT: a flood of callers that never acknowledge, and readers that report everything as lost again and
 * again, and send data.
 *
 * @module
 */
import { randomBytes, randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Call } from '../../../src/srt/connection/call.ts'
import { decodeHandshake } from '../../../src/srt/wire/handshake.ts'
import { encodeLossList } from '../../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  HEADER_BYTES,
  isControl,
  sequenceNumber,
  writeControlHeader,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import type { Target } from '../target.ts'
import { flood, type Flood } from './handshakes.ts'

/** Interval of bursts of what became due: an attack is a rate, and has no condition to wait for. */
const BURST_MS = 10
/** Packets that a reader reports as lost, up to the latest: all that are on their way to it. */
const FLIGHT_PACKETS = 8192

/** @param options  default: 30,000 conclusions at 2000 a second, from 3 networks */
export async function floodReaders(
  target: Target,
  signal: AbortSignal,
  options: Partial<Flood> = {},
): ReturnType<typeof flood> {
  let calls = 0
  return flood(target, signal, {
    ...{ networks: 3, perSec: 2000, conclusions: 30_000, subnet: 84 },
    streamId: () => {
      const token = calls++ % 2 === 0 ? '' : `,token=${randomBytes(64).toString('base64url')}`
      return `mode=request,rid=bystander${token}`
    },
    ...options,
  })
}

export interface ReaderStorm {
  readonly readers: number
  /** NAKs a second of each. */
  readonly naksPerSec: number
  /** Data packets a second of each, with a missing one before the first. */
  readonly dataPerSec: number
}

/** Readers of the stream `bystander` that want it for 65 s. @returns datagrams in both directions */
export async function stormReaders(
  target: Target,
  signal: AbortSignal,
  { readers, naksPerSec, dataPerSec }: ReaderStorm,
): Promise<{ connected: number; sent: number; received: number; receivedMb: number }> {
  const storms = await Promise.all(
    Array.from({ length: readers }, (_, index) => openReader(target, `127.85.${index + 1}.1`)),
  )
  const startMs = performance.now()
  let [naks, data] = [0, 0]
  while (!signal.aborted) {
    const elapsedSec = (performance.now() - startMs) / 1000
    // What is late is left out.
    naks = Math.max(naks, elapsedSec * naksPerSec - naksPerSec / 20)
    data = Math.max(data, elapsedSec * dataPerSec - dataPerSec / 20)
    for (; naks < elapsedSec * naksPerSec; naks++) for (const storm of storms) storm.sendNak()
    for (; data < elapsedSec * dataPerSec; data++) for (const storm of storms) storm.sendData()
    await sleep(BURST_MS)
  }
  const sum = (key: 'connected' | 'sent' | 'received' | 'receivedBytes') =>
    storms.reduce((total, { counts }) => total + counts[key], 0)
  for (const storm of storms) storm.close()
  const receivedMb = Math.round(sum('receivedBytes') / 1e6)
  return { connected: sum('connected'), sent: sum('sent'), received: sum('received'), receivedMb }
}

/** Calls the service, and waits 3 s for its answer. */
async function openReader({ host, srtPort }: Target, address: string) {
  const socket = createSocket('udp4')
  socket.bind(0, address)
  await once(socket, 'listening')
  socket.connect(srtPort, host)
  await once(socket, 'connect')
  socket.on('error', () => undefined)
  const counts = { connected: 0, sent: 0, received: 0, receivedBytes: 0 }
  const initialSequenceNumber = randomInt(2 ** 30)
  let [peer, latest, next] = [0, initialSequenceNumber, initialSequenceNumber + 1]
  const send = (datagram: Buffer) => {
    counts.sent++
    socket.send(datagram)
  }
  const call = new Call({
    ...{ remoteAddress: host, remotePort: srtPort, socketId: randomInt(1, 2 ** 30) },
    ...{ streamId: 'mode=request,rid=bystander', latencyMs: 65_535, peerLatencyMs: 8000 },
    ...{ initialSequenceNumber, startTimestampUs: 0, sendBufferPackets: 1, maxBandwidthBps: 1e9 },
    ...{ connectTimeoutUs: 3e6, idleTimeoutUs: 5e6 },
    host: {
      transmit: (datagram) => socket.send(datagram as Buffer),
      connected: () => (counts.connected = 1),
      refused: () => undefined,
      ended: () => undefined,
      fail: () => undefined,
    },
  })
  const nowUs = () => performance.now() * 1000
  socket.on('message', (datagram) => {
    counts.received++
    counts.receivedBytes += datagram.length
    if (!isControl(datagram)) latest = sequenceNumber(datagram)
    if (counts.connected === 1) return
    peer = decodeHandshake(datagram)?.socketId ?? peer
    call.handleDatagram(datagram, nowUs())
  })
  call.start(nowUs())
  for (let i = 0; i < 300 && counts.connected === 0; i++) {
    await sleep(BURST_MS)
    call.tick(nowUs())
  }
  return {
    counts,
    sendNak() {
      const first = Math.max(initialSequenceNumber, latest - FLIGHT_PACKETS)
      const contents = encodeLossList([{ first, last: latest + 1 }])
      const nak = Buffer.alloc(HEADER_BYTES + contents.length)
      writeControlHeader(nak, {
        ...{ type: ControlType.NAK, information: 0, timestampUs: 0, socketId: peer },
      })
      nak.set(contents, HEADER_BYTES)
      send(nak)
    },
    sendData() {
      const data = Buffer.alloc(HEADER_BYTES + 1316)
      writeDataHeader(data, { sequence: next++, message: 1, timestampUs: 0, socketId: peer })
      send(data)
    },
    close: () => socket.close(),
  }
}
