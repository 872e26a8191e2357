/**
 * SRT listeners that write the received stream to standard output.
 *
 * @module
 */
import { createSocket } from 'node:dgram'
import { freePort } from '../../support/free-port.ts'
import { encodeInduction } from '../../support/induction.ts'
import { start } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import { PAYLOAD_BYTES, type Test } from './publishers.ts'

export interface ForeignListener {
  readonly port: number
  readonly bytes: () => Buffer
  /** Resolves once the program has exited and all its output is in `bytes`. */
  readonly exit: Promise<unknown>
}

export interface Receiver {
  /** Program that must be installed. */
  readonly tool: string
  /** @param query  options of the URL, as libsrt's own programs name them */
  readonly command: (port: number, query: string) => string
}

export const RECEIVERS = {
  'srt-live-transmit': {
    tool: 'srt-live-transmit',
    command: (port, query) => `srt-live-transmit -q -a:no srt://:${port}?${query} file://con`,
  },
  ffmpeg: {
    tool: 'ffmpeg',
    command: (port, query) => {
      const input = `-f data -raw_packet_size ${PAYLOAD_BYTES} -fflags nobuffer -probesize 32 -analyzeduration 0`
      const url = `srt://:${port}?mode=listener&${query}`
      return `ffmpeg -v error ${input} -i ${url} -map 0 -c copy -f data -flush_packets 1 pipe:1`
    },
  },
  GStreamer: {
    tool: 'gst-launch-1.0',
    command: (port, query) =>
      `gst-launch-1.0 -q srtsrc uri=srt://:${port}?mode=listener&${query} ! fdsink fd=1`,
  },
} as const satisfies Record<string, Receiver>

/**
 * Starts a listener, and resolves once it listens.
 *
 * @throws {Error} with the output of a program that exits instead
 */
export async function listen(
  t: Test,
  { command }: Pick<Receiver, 'command'>,
  query = '',
): Promise<ForeignListener> {
  const port = await freePort()
  const [program, ...args] = command(port, query).split(' ')
  const chunks: Buffer[] = []
  const { child, output, exit } = start(t, program!, args)
  child.stdout!.on('data', (chunk: Buffer) => chunks.push(chunk))
  let exited = false
  void exit.then(() => (exited = true))
  await untilAnswered(port, () => {
    if (exited) throw new Error(`${program} exited: ${output()}`)
  })
  return { port, bytes: () => Buffer.concat(chunks), exit }
}

/** Polls a port until an SRT listener responds. */
async function untilAnswered(port: number, check: () => void): Promise<void> {
  const socket = createSocket('udp4')
  let isAnswered = false
  socket.on('message', () => (isAnswered = true))
  try {
    const probe = encodeInduction(1, '127.0.0.1')
    const isReady = () => {
      check()
      socket.send(probe, port, '127.0.0.1')
      return isAnswered
    }
    await until(`an SRT listener on port ${port}`, isReady, { everyMs: 50 })
  } finally {
    socket.close()
  }
}
