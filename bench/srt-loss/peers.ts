/**
 * Who is compared, in one shape: senders publish their standard input, receivers write what they get to standard output.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../support/programs.ts'
import { PAYLOAD_BYTES } from './stream.ts'

const program = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** Calls 127.0.0.1:`port`; writes "connected" to standard error once it reads its input. */
export const SENDERS = {
  millrace: (port: number, latencyMs: number): ChildProcess =>
    startPeer(process.execPath, [program('send.js'), String(port), String(latencyMs)]),
  'srt-live-transmit': (port: number, latencyMs: number): ChildProcess =>
    startPeer('srt-live-transmit', [
      ...['-v', `-chunk:${PAYLOAD_BYTES}`, 'file://con'],
      `srt://127.0.0.1:${port}?latency=${latencyMs}&conntimeo=15000`,
    ]),
} as const

/** Listens on `port`. */
export const RECEIVERS = {
  millrace: (port: number, latencyMs: number): ChildProcess =>
    startPeer(process.execPath, [program('receive.js'), String(port), String(latencyMs)]),
  'srt-live-transmit': (port: number, latencyMs: number): ChildProcess =>
    startPeer('srt-live-transmit', [
      ...['-q', '-a:no', `-chunk:${PAYLOAD_BYTES}`],
      ...[`srt://127.0.0.1:${port}?mode=listener&latency=${latencyMs}`, 'file://con'],
    ]),
} as const

/** The same names in both. */
export type PeerName = keyof typeof SENDERS

function startPeer(command: string, args: readonly string[]): ChildProcess {
  return startProgram(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
}
