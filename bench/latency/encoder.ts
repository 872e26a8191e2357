/**
 * ffmpeg as a live encoder of frames that carry the time of their capture.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { PACKET_BYTES, readPid } from '../../src/mpegts/packet.ts'
import { pace } from '../support/pace.ts'
import { startProgram, stopProgram } from '../support/programs.ts'
import { ClockPicture, HEIGHT, WIDTH } from './clock-picture.ts'

const FRAMES_PER_SEC = 30
const GOP_FRAMES = 60

/** Output for datagrams of seven packets, which SRT sends as well. */
const DATAGRAM_BYTES = 1316
/** PID of the first stream of ffmpeg's muxer. */
const VIDEO_PID = 0x100
const UNIT_START = 0x40

const ARGS = [
  ...['-v', 'error', '-probesize', '32', '-analyzeduration', '0'],
  ...['-f', 'rawvideo', '-pix_fmt', 'yuv420p', '-s', `${WIDTH}x${HEIGHT}`],
  ...['-r', String(FRAMES_PER_SEC), '-i', 'pipe:0', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'],
  ...['-c:v', 'libx264', '-preset', 'superfast', '-tune', 'zerolatency', '-b:v', '2M'],
  ...['-maxrate', '2M', '-bufsize', '1M', '-g', String(GOP_FRAMES), '-sc_threshold', '0'],
  ...['-c:a', 'aac', '-b:a', '96k'],
  ...['-flush_packets', '1', '-pes_payload_size', '0', '-f', 'mpegts'],
]

export interface Encoder {
  /** Capture times of all frames so far, milliseconds since 1970. */
  readonly capturedMs: readonly number[]
  stop(): Promise<void>
}

/** Starts an encoder that publishes to the URL. */
export async function startEncoder(url: string): Promise<Encoder> {
  const ffmpeg = startProgram('ffmpeg', [...ARGS, url], { stdio: ['pipe', 'ignore', 'inherit'] })
  const capturedMs: number[] = []
  const picture = new ClockPicture()
  // Frames that ffmpeg does not take any more are lost.
  ffmpeg.stdin!.on('error', () => undefined)
  const capture = () => {
    capturedMs.push(Date.now())
    return ffmpeg.stdin!.write(picture.draw(capturedMs.at(-1)!))
  }
  // A frame is larger than the pipe: ffmpeg reads once it is gone.
  if (!capture()) await Promise.race([once(ffmpeg.stdin!, 'drain'), once(ffmpeg, 'exit')])
  void pace(FRAMES_PER_SEC, capture, () => isRunning(ffmpeg))
  return { capturedMs, stop: () => stopProgram(ffmpeg, 'SIGKILL') }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

/** Time from the capture of each frame until the encoder sends the first datagram of it, over UDP in place of SRT. */
export async function measureEncoder(seconds: number): Promise<number[]> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const sentMs: number[] = []
  socket.on('message', (datagram: Buffer) => {
    for (let at = 0; at < datagram.length; at += PACKET_BYTES) {
      const isStart = (datagram[at + 1]! & UNIT_START) !== 0
      if (isStart && readPid(datagram, at) === VIDEO_PID) sentMs.push(Date.now())
    }
  })
  const url = `udp://127.0.0.1:${socket.address().port}?pkt_size=${DATAGRAM_BYTES}`
  const { capturedMs, stop } = await startEncoder(url)
  const frames = seconds * FRAMES_PER_SEC
  while (sentMs.length < frames) await once(socket, 'message')
  await stop()
  socket.close()
  return sentMs.map((ms, index) => ms - capturedMs[index]!)
}
