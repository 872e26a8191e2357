/**
 * SRT listeners that write the received stream to standard output.
 *
 * @module
 */
import { freePort } from '../support/free-port.ts'
import { start } from '../support/process.ts'
import { PAYLOAD_BYTES, type Test } from './publishers.ts'

export interface ForeignListener {
  readonly port: number
  readonly bytes: () => Buffer
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

export async function listen(t: Test, { command }: Receiver, query = ''): Promise<ForeignListener> {
  const port = await freePort()
  const [program, ...args] = command(port, query).split(' ')
  const chunks: Buffer[] = []
  start(t, program!, args).child.stdout!.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { port, bytes: () => Buffer.concat(chunks) }
}
