/**
 * Viewers on bad lines beside clients that never read, all of them on the newest segment of a live stream, so that each
 * segment stays in memory for somebody while the window moves on.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Target } from '../target.ts'
import { openConnections, pause, readUpTo } from './raw-connection.ts'

export interface SlowCrowd {
  /** Clients that read at `bytesPerSec`. */
  readonly slow: number
  readonly bytesPerSec: number
  /** Clients that read nothing. */
  readonly silent: number
  /** Interval at which each client requests the segment that is newest then, whatever it still has to read. */
  readonly requestEveryMs: number
  /** @returns path of the newest segment */
  readonly newest: () => Promise<string>
}

export interface SlowCrowdFigures {
  readonly opened: number
  readonly requests: number
  readonly readBytes: number
  /** Connections that the service closed; others took their places. */
  readonly closedByService: number
  /** Maximum memory of all TCP sockets of the machine, in MiB: bytes in the kernel's buffers. */
  readonly maxKernelMib: number
}

/** Interval at which a slow client reads: it takes a tenth of its bytes per second. */
const READ_EVERY_MS = 100

/** Maximum number of connections opened per `READ_EVERY_MS`. */
const MAX_OPENED_AT_ONCE = 50

interface Client {
  readonly socket: Socket
  readonly isSilent: boolean
  nextRequestMs: number
}

/** Keeps the crowd complete until the signal aborts. */
export async function crowdSlowly(
  target: Target,
  signal: AbortSignal,
  crowd: SlowCrowd,
): Promise<SlowCrowdFigures> {
  const { slow, silent, bytesPerSec, requestEveryMs, newest } = crowd
  const all = slow + silent
  const clients = new Set<Client>()
  const figures = { opened: 0, requests: 0, readBytes: 0, closedByService: 0, maxKernelMib: 0 }
  let path = await newest()
  let pathMs = performance.now()
  while (!signal.aborted) {
    const nowMs = performance.now()
    if (nowMs - pathMs >= 1000) {
      path = await newest()
      pathMs = nowMs
      figures.maxKernelMib = Math.max(figures.maxKernelMib, kernelMib())
    }
    for (const client of clients) {
      if (!client.socket.closed) continue
      clients.delete(client)
      figures.closedByService++
    }
    const missing = Math.min(all - clients.size, MAX_OPENED_AT_ONCE)
    for (const socket of await openConnections(target, missing, signal)) {
      const silentNow = [...clients].filter(({ isSilent }) => isSilent).length
      // Spread over the interval, so that every segment has readers.
      const nextRequestMs = nowMs + ((figures.opened++ % all) * requestEveryMs) / all
      clients.add({ socket, isSilent: silentNow < silent, nextRequestMs })
    }
    for (const client of clients) {
      const { socket, isSilent } = client
      if (!isSilent) figures.readBytes += readUpTo(socket, (bytesPerSec * READ_EVERY_MS) / 1000)
      if (nowMs < client.nextRequestMs || !socket.writable) continue
      client.nextRequestMs += requestEveryMs
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
      figures.requests++
    }
    await pause(READ_EVERY_MS, signal)
  }
  return figures
}

/** Memory of TCP in /proc/net/sockstat, which counts pages of 4 KiB; 0 where there is none. */
function kernelMib(): number {
  try {
    const pages = /^TCP: .* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1]
    return Math.round((Number(pages ?? 0) * 4) / 1024)
  } catch {
    return 0
  }
}
