/**
 * Stock players read a stream over SRT: what arrives are the encoder's bytes and frames, with losses on both sides.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { HEADER_BYTES, isControl, sequenceNumber } from '../../../src/srt/wire/packet.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { start, type Program } from '../../support/process.ts'
import { startService } from '../../support/service.ts'
import { rounds } from '../../support/soak.ts'
import { startRelay, type UdpRelay } from '../../support/udp-relay.ts'
import { until } from '../../support/until.ts'
import { requireTool } from '../support/tools.ts'

/** Beside other tests a player may stand still for longer than the usual 120 ms, and the usual 3 s of a call. */
const LATENCY_MS = 4000
const CONNECT_MS = 30_000
const LOSSY = { loss: 0.05, delayMs: 5, sparesHandshakes: true }
const PLAYED_SEC = rounds(10, 60)
/** What a program may not have written yet when it ends, which is no fault of the stream. */
const UNWRITTEN_BYTES = 64 * 1316
/** The same in frames of the demo clip; `ffplay` has some in its decoder. */
const TAIL_FRAMES = 30

/** Shell commands that write what they receive to a file. */
const READERS = {
  ffmpeg: (url, file) => {
    const input = '-f data -raw_packet_size 1316 -fflags nobuffer -probesize 32 -analyzeduration 0'
    return `ffmpeg -v error ${input} -i '${url}&latency=${LATENCY_MS}000&connect_timeout=${CONNECT_MS}' -map 0 -c copy -f data -flush_packets 1 ${file}`
  },
  'srt-live-transmit': (url, file) =>
    `srt-live-transmit -q -a:no '${url}&latency=${LATENCY_MS}&conntimeo=${CONNECT_MS}' file://con > ${file}`,
  'gst-launch-1.0': (url, file) => {
    const [uri, streamId] = url.split('?streamid=')
    return `gst-launch-1.0 -q srtsrc uri=${uri} streamid='${streamId}' latency=${LATENCY_MS} ! filesink buffer-mode=2 location=${file}`
  },
  // It does not run as root.
  cvlc: (url, file) =>
    `${process.getuid?.() === 0 ? 'setpriv --reuid=65534 --clear-groups env HOME=/tmp ' : ''}cvlc -q '${url}&latency=${LATENCY_MS}' --demux=dump --demuxdump-file=${file}`,
} as const satisfies Record<string, (url: string, file: string) => string>

t.test('players get the bytes and frames of the encoder', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffplay', ...Object.keys(READERS))) return
  const { server, api } = await startService(t, { playbackSecret: 'p'.repeat(32) })
  const { body } = await api('start-stream', { stream_id: 'studio', play: true })
  const sent = recordBytes()
  const ingest = relayTo(t, server.srtPort, sent.tap)
  const egress = relayTo(t, server.srtPort)
  const url = String(body.data['srt_url']).replace(`:${server.srtPort}`, `:${ingest.port}`)
  const encoder = publishDemo(t, `${url}&latency=${LATENCY_MS}`)
  await until('live', () => server.status('studio').live)

  const folder = mkdtempSync(join(tmpdir(), 'play-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o777)
  const playUrl = String(body.data['play_url']).replace(`:${server.srtPort}`, `:${egress.port}`)
  const readers = Object.entries(READERS).map(([name, commandOf]) => {
    const file = join(folder, `${name}.ts`)
    return { name, file, program: start(t, 'sh', ['-c', commandOf(playUrl, file)]) }
  })
  const ffplay = startFfplay(t, playUrl)
  const programs = [...readers, { name: 'ffplay', program: ffplay }]
  const count = () => server.status('studio').readers.length
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  /** Waits for something that all players do, and says what each has done if one has ended or they do not. */
  const untilAll = (what: string, isDone: () => boolean) =>
    until(`all of them ${what}`, () => {
      const gone = programs.find(({ program: { child } }) => child.exitCode !== null)
      if (gone !== undefined) throw new Error(`${gone.name} has ended`)
      return isDone()
    }).catch((error: unknown) => {
      t.comment(server.status('studio').readers)
      for (const { name, file } of readers) t.comment(`${name}: ${sizeOf(file)} bytes written`)
      for (const { name, program } of programs) t.comment(`${name}: ${program.output()}`)
      throw error
    })
  await untilAll('read', () => count() === programs.length)
  await untilAll('write', () => readers.every(({ file }) => sizeOf(file) > 0))
  const { durationSec } = server.status('studio').totals
  await untilAll(
    'play',
    () => server.status('studio').totals.durationSec > durationSec + PLAYED_SEC,
  )
  encoder.stop()
  await encoder.end
  const bytes = sent.bytes()
  const capture = join(folder, 'encoder.ts')
  writeFileSync(capture, bytes)
  const sentFrames = await framesOf(t, capture)
  const startOf = (file: string) => bytes.indexOf(readFileSync(file).subarray(0, 7 * 188))
  for (const { name, file } of readers) {
    const at = startOf(file)
    t.ok(at >= 0, `${name} begins with bytes of the encoder`)
    await until(`${name} writes the last bytes`, () => {
      return statSync(file).size > bytes.length - at - UNWRITTEN_BYTES
    })
  }
  const shown = () => shownFrames(ffplay.output())
  const isTail = (pts: number | undefined) => sentFrames.slice(-TAIL_FRAMES).includes(pts ?? NaN)
  await until('ffplay shows the last frames', () => isTail(shown().at(-1)))
  const { publisher: _, readers: figures } = server.status('studio')
  for (const { packetsSent, packetsDropped, packetsRetransmitted } of figures) {
    t.ok(packetsSent > 0 && packetsRetransmitted > 0)
    t.equal(packetsDropped, 0)
  }
  await server.stopStream('studio')
  await until('all of them have left', () => count() === 0)
  for (const { name, file, program } of readers) {
    // VLC does not always end with its input.
    program.kill('SIGKILL')
    await program.exit
    const got = readFileSync(file)
    const at = startOf(file)
    const differs = got.findIndex((byte, index) => byte !== bytes[at + index])
    t.equal(differs, -1, `${name}: the same ${got.length} bytes: ${program.output()}`)
    t.equal(await decodingErrors(t, file), '', `${name} begins with a key frame`)
    checkFrames(name, await framesOf(t, file))
  }
  checkFrames('ffplay', shown())

  function checkFrames(name: string, frames: readonly number[]): void {
    const first = sentFrames.indexOf(frames[0]!)
    const wanted = sentFrames.slice(first, first + frames.length)
    t.strictSame(frames, wanted, `${name}: the frames of the encoder`)
    const missing = sentFrames.length - first - frames.length
    t.ok(missing < TAIL_FRAMES, `${name}: ${frames.length} frames, and ${missing} at the end`)
  }
})

/** Plays without a screen, and prints each frame that it shows. */
function startFfplay(t: Test, url: string): Program {
  const input = `${url}&latency=${LATENCY_MS}000&connect_timeout=${CONNECT_MS}`
  const args = ['-nostats', '-noframedrop', '-vf', 'showinfo', input]
  const env = { SDL_VIDEODRIVER: 'dummy', SDL_AUDIODRIVER: 'dummy' }
  return start(t, 'ffplay', args, { env })
}

/** @param output  of `startFfplay` */
function shownFrames(output: string): number[] {
  return [...output.matchAll(/ n: *\d+ pts: *(\d+)/g)].map(([, pts]) => Number(pts))
}

/** Timestamps of the video frames of a file, none of which is reordered. */
async function framesOf(t: Test, file: string): Promise<number[]> {
  const of = ['-select_streams', 'v', '-show_entries', 'packet=pts', '-of', 'default=nk=1:nw=1']
  const { output, exit } = start(t, 'ffprobe', ['-v', 'fatal', ...of, file])
  await exit
  return output().trim().split('\n').map(Number)
}

/** The payloads of data packets, by sequence number. */
function recordBytes() {
  const payloads = new Map<number, Buffer>()
  return {
    tap: (direction: string, datagram: Buffer) => {
      if (direction !== 'forward' || isControl(datagram)) return
      payloads.set(sequenceNumber(datagram), Buffer.from(datagram.subarray(HEADER_BYTES)))
    },
    bytes: () => {
      // No sequence number wraps, unless the first one is by chance among the last.
      const sorted = [...payloads].toSorted(([a], [b]) => a - b)
      return Buffer.concat(sorted.map(([, payload]) => payload))
    },
  }
}

function relayTo(
  t: Test,
  targetPort: number,
  tap?: (direction: string, datagram: Buffer) => void,
): UdpRelay {
  const relay = startRelay({ targetPort, forward: LOSSY, backward: LOSSY, ...(tap && { tap }) })
  t.teardown(() => relay.close())
  return relay
}

async function decodingErrors(t: Test, file: string): Promise<string> {
  // The last frame may be cut off.
  const args = ['-v', 'error', '-i', file, '-map', '0:v', '-frames:v', '60', '-f', 'null', '-']
  const { output, exit } = start(t, 'ffmpeg', args)
  await exit
  return output()
}
