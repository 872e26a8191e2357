/**
 * Who is compared, in one shape: senders publish their standard input, receivers write what they get to standard output.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../support/programs.ts'
import { PAYLOAD_BYTES } from './stream.ts'

export const PEERS = ['millrace', 'srt-live-transmit'] as const

export type PeerName = (typeof PEERS)[number]

const program = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const SENDERS: Readonly<Record<PeerName, (port: number, latencyMs: number) => ChildProcess>> = {
  millrace: (port, latencyMs) =>
    startPeer(process.execPath, [program('send.js'), String(port), String(latencyMs)]),
  'srt-live-transmit': (port, latencyMs) =>
    startPeer('srt-live-transmit', [
      ...['-v', `-chunk:${PAYLOAD_BYTES}`, 'file://con'],
      `srt://127.0.0.1:${port}?latency=${latencyMs}&conntimeo=15000`,
    ]),
}

const RECEIVERS: Readonly<Record<PeerName, (port: number, latencyMs: number) => ChildProcess>> = {
  millrace: (port, latencyMs) =>
    startPeer(process.execPath, [program('receive.js'), String(port), String(latencyMs)]),
  'srt-live-transmit': (port, latencyMs) =>
    startPeer('srt-live-transmit', [
      ...['-q', '-a:no', `-chunk:${PAYLOAD_BYTES}`],
      ...[`srt://127.0.0.1:${port}?mode=listener&latency=${latencyMs}`, 'file://con'],
    ]),
}

/** Calls 127.0.0.1:`port`; from now on nothing that is written to it is thrown away. */
export async function startSender(
  name: PeerName,
  port: number,
  latencyMs: number,
): Promise<ChildProcess> {
  const child = SENDERS[name](port, latencyMs)
  const signal = AbortSignal.timeout(20_000)
  for (let said = ''; !said.includes('connected');) {
    const [chunk] = (await once(child.stderr!, 'data', { signal })) as [Buffer]
    said += chunk.toString()
  }
  child.stderr!.resume()
  child.stdin!.on('error', () => undefined)
  return child
}

/** Listens on 127.0.0.1:`port`. */
export async function startReceiver(
  name: PeerName,
  port: number,
  latencyMs: number,
): Promise<ChildProcess> {
  const child = RECEIVERS[name](port, latencyMs)
  // srt-live-transmit does not say when it listens.
  await sleep(1000)
  return child
}

function startPeer(command: string, args: readonly string[]): ChildProcess {
  return startProgram(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
}
