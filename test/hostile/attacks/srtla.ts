/**
 * Floods of the SRTLA port: registrations that never go on, groups that nobody uses, and keepalives and media of strangers.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeSrtla, SrtlaType, srtlaType } from '../../../src/srt/srtla/packet.ts'
import type { Target } from '../target.ts'

/** Interval of bursts of what became due: an attack is a rate, and has no condition to wait for. */
const BURST_MS = 10
/** Max number of datagrams sent late in one burst, as a share of a second. */
const MAX_BURST_SEC = 0.05

export interface SrtlaFlood {
  readonly what: 'registrations' | 'groups' | 'strangers'
  /** Number of /24 networks, with one address each. */
  readonly networks: number
  /** Datagrams per second of all networks together; without the replies to REG2. */
  readonly perSec: number
  readonly datagrams: number
  /** Second byte of the addresses, 127.x.n.1. */
  readonly subnet: number
}

/** @returns number of datagrams sent, and number of replies by type */
export async function floodSrtla(
  { host, srtlaPort = 0 }: Target,
  signal: AbortSignal,
  { what, networks, perSec, datagrams, subnet }: SrtlaFlood,
): Promise<{ sent: number; replies: Record<string, number> }> {
  const replies: Record<string, number> = {}
  const sockets = await Promise.all(
    Array.from({ length: networks }, async (_, network) => {
      const socket = createSocket('udp4')
      socket.bind(0, `127.${subnet}.${network + 1}.1`)
      await once(socket, 'listening')
      socket.on('message', (datagram) => {
        const type = srtlaType(datagram)?.toString(16) ?? 'srt'
        replies[type] = (replies[type] ?? 0) + 1
        if (what === 'groups' && type === '9201') socket.send(datagram, srtlaPort, host)
      })
      return socket
    }),
  )
  const strange = [encodeSrtla(SrtlaType.KEEPALIVE), Buffer.alloc(1332, 1)]
  let sent = 0
  try {
    const startMs = performance.now()
    while (sent < datagrams && !signal.aborted) {
      const scheduled = ((performance.now() - startMs) / 1000) * perSec
      const due = Math.min(scheduled, sent + perSec * MAX_BURST_SEC, datagrams)
      while (sent < due) {
        const datagram =
          what === 'strangers' ? strange[sent % 2]! : encodeSrtla(SrtlaType.REG1, randomBytes(256))
        sockets[sent++ % networks]!.send(datagram, srtlaPort, host)
      }
      await sleep(BURST_MS)
    }
  } finally {
    for (const socket of sockets) socket.close()
  }
  return { sent, replies }
}
