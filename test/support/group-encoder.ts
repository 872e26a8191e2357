/**
 * The socket group of `group-sender.ts` over real sockets: publishes the demo clip in real time until the test ends.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { LoopedClip } from '../../src/pace/looped-clip.ts'
import { GROUP_ID_BIT } from '../../src/srt/wire/extension.ts'
import { CLIP } from './clip-encoder.ts'
import { GroupSender } from './group-sender.ts'

const TICK_MS = 10

export interface GroupEncoderOptions {
  /** A `GroupType`. */
  readonly type: number
  /** Port on the loopback that each line calls; the first line has the highest weight. */
  readonly ports: readonly number[]
  readonly streamKey: string
  readonly latencyMs: number
}

export interface GroupEncoder {
  readonly sender: GroupSender
  /** What was sent, each packet once. */
  readonly payloads: readonly Buffer[]
  /** Reject codes and timeouts of lines. */
  readonly refusals: readonly string[]
  /** Sends no more, but what is asked for. */
  pause(): void
}

export function publishAsGroup(
  t: { teardown(close: () => unknown): unknown },
  { type, ports, streamKey, latencyMs }: GroupEncoderOptions,
): GroupEncoder {
  const startUs = now()
  const sockets = new Map<number, Socket>()
  const refusals: string[] = []
  const payloads: Buffer[] = []
  const sender = new GroupSender({
    ...{ type, streamId: streamKey, latencyMs, nowUs: startUs },
    groupId: (GROUP_ID_BIT | randomBytes(4).readUInt32BE()) & 0x7fffffff,
    weights: ports.map((_, index) => ports.length - index),
    initialSequenceNumber: 0x7fffff00,
    host: {
      dial: (line) => {
        sockets.get(line)?.close()
        const socket = createSocket('udp4')
        socket.on('message', (datagram) => sender.handleDatagram(line, datagram, now()))
        sockets.set(line, socket)
      },
      send: (line, datagram) => sockets.get(line)!.send(datagram, ports[line], '127.0.0.1'),
      refused: (line, error) => refusals.push(`line ${line}: ${error.message}`),
    },
  })
  const clip = new LoopedClip(CLIP)
  let beganUs: number | undefined
  let isPaused = false
  const timer = setInterval(() => {
    const nowUs = now()
    sender.tick(nowUs)
    if (beganUs === undefined && !sender.lines.some(({ isConnected }) => isConnected)) return
    beganUs ??= nowUs
    if (isPaused) return
    for (const { payload } of clip.takeUntil(nowUs - beganUs)) {
      payloads.push(payload)
      sender.push(payload, nowUs)
    }
  }, TICK_MS)
  ports.forEach((_, line) => sender.call(line, startUs))
  t.teardown(() => {
    clearInterval(timer)
    sender.close(now())
    for (const socket of sockets.values()) socket.close()
  })
  return { sender, payloads, refusals, pause: () => (isPaused = true) }
}

function now(): number {
  return performance.now() * 1000
}
