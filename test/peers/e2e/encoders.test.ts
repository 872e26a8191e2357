/**
 * Real encoders publish with the URL of a webhook while a viewer records everything; foreign tools compare the
 * recording with a file that the encoder wrote at the same time.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { countMedia, decodeErrors } from '../support/media.ts'
import { start } from '../../support/process.ts'
import { checkPlaylists } from '../../support/check-playlists.ts'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { record } from '../../support/viewer.ts'
import { findEvent, receivedTypes, startWebhookReceiver } from '../../support/webhook-receiver.ts'

/** Eight segments. */
const SECONDS = 16

/** Warnings that are true where encoder and service wait for their turn: an encoder connects before it has encoded anything. */
const OF_SLOW_MACHINES = new Set([
  ...['NOT_REAL_TIME', 'LATENCY_TOO_LOW', 'LOSSES_NOT_REPAIRED'],
  'NO_MEDIA',
])

const TEST_VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30']
const TONE = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000']
const X264 = '-c:v libx264 -preset ultrafast -tune zerolatency -g 60 -pix_fmt yuv420p'.split(' ')
const X265 =
  '-c:v libx265 -preset ultrafast -x265-params keyint=60:open-gop=0:log-level=none -pix_fmt yuv420p'.split(
    ' ',
  )

/** ffmpeg in real time that writes the same packets to `file` and to `target`. */
function ffmpeg(codec: readonly string[], file: string, target: string): string[] {
  return [
    ...['-v', 'error', '-re', ...TEST_VIDEO, '-re', ...TONE, '-t', String(SECONDS)],
    ...['-map', '0:v', '-map', '1:a', ...codec, '-c:a', 'aac', '-b:a', '128k'],
    ...['-f', 'tee', `[f=mpegts]${file}|[f=mpegts]${target}`],
  ]
}

/** Beside other tests a program may stand still for longer than the usual 120 ms, and the usual 3 s of a call. */
const LATENCY_MS = 4000
const CONNECT_MS = 30_000

/** Without `linger`, libsrt closes before it has sent its last packets. ffmpeg takes the latency in microseconds. */
function forFfmpeg(url: string): string {
  return `${url}&linger=10&latency=${LATENCY_MS * 1000}&connect_timeout=${CONNECT_MS}`
}

interface Encoder {
  readonly name: string
  readonly tools: readonly string[]
  /** Whether the stream is encrypted, with the passphrase that the URL of the answer contains. */
  readonly encryption: boolean
  /** A shell command line that publishes to `$URL` and keeps the same bytes in `$FILE`. */
  readonly command: (file: string, url: string) => [string, string[]]
}

const ENCODERS: readonly Encoder[] = [
  {
    name: 'ffmpeg, x264 and AAC',
    tools: [],
    encryption: false,
    command: (file, url) => ['ffmpeg', ffmpeg(X264, file, forFfmpeg(url))],
  },
  {
    name: 'ffmpeg, x265 and AAC, encrypted',
    tools: [],
    encryption: true,
    command: (file, url) => ['ffmpeg', ffmpeg(X265, file, forFfmpeg(url))],
  },
  {
    name: 'srt-live-transmit, encrypted',
    tools: ['srt-live-transmit'],
    encryption: true,
    // It drops what it reads before it is connected, reads in whole chunks, and never notices the end of its input: null
    // packets push out what is left. Once refused it ends with 0, and with `-a:yes` waits for input instead.
    command: (file, url) => {
      const encoder = ['ffmpeg', ...ffmpeg(X264, file, 'pipe:1')].map(quote).join(' ')
      writeFileSync(`${file}.nulls`, nullPackets(140))
      const script = `
        mkfifo ${file}.fifo
        srt-live-transmit -v -a:no -chunk:1316 file://con ${quote(`${url}&latency=${LATENCY_MS}&conntimeo=${CONNECT_MS}`)} < ${file}.fifo > ${file}.log 2>&1 & transmit=$!
        {
          until grep -q 'SRT target connected' ${file}.log; do
            kill -0 $transmit || { cat ${file}.log >&2; exit 1; }
            sleep 0.1
          done
          ${encoder}; cat ${file}.nulls; sleep 1
        } > ${file}.fifo
        kill $transmit; wait $transmit; true`
      return ['sh', ['-c', script]]
    },
  },
  {
    name: 'GStreamer srtsink, encrypted',
    tools: ['gst-launch-1.0'],
    encryption: true,
    command: (file, url) => {
      const [address, query] = url.split('?streamid=') as [string, string]
      const [streamKey, passphrase, keyLength] = query.split('&')
      const frames = SECONDS * 30
      const buffers = Math.round((SECONDS * 48_000) / 1024)
      // `clocksync` sets the pace: with `is-live`, each source counts from its own start, and audio that is ahead of the first
      // key frame by more than 0.25 s is left out.
      const pipeline = [
        `mpegtsmux name=mux alignment=7 ! tee name=t`,
        `t. ! queue ! filesink location=${file}`,
        `t. ! queue ! srtsink uri=${address} streamid="${streamKey}" ${passphrase} ${keyLength} latency=${LATENCY_MS} wait-for-connection=true`,
        `videotestsrc num-buffers=${frames} ! video/x-raw,width=320,height=180,framerate=30/1 ! clocksync`,
        `! x264enc speed-preset=ultrafast tune=zerolatency key-int-max=60 ! h264parse config-interval=-1 ! queue ! mux.`,
        `audiotestsrc samplesperbuffer=1024 num-buffers=${buffers} ! audio/x-raw,rate=48000,channels=2 ! clocksync`,
        `! voaacenc ! aacparse ! queue ! mux.`,
        // srtsink closes with the pipeline, and drops what is not acknowledged: a third sink keeps it open for 5 s.
        `videotestsrc num-buffers=${frames + 150} ! video/x-raw,width=16,height=16,framerate=30/1 ! fakesink sync=true`,
      ]
      return ['sh', ['-c', `gst-launch-1.0 -q -e ${pipeline.join(' ')}`]]
    },
  },
]

t.jobs = ENCODERS.length

for (const encoder of ENCODERS) {
  t.test(`${encoder.name}: every frame and byte arrives`, { buffered: true }, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe', ...encoder.tools)) return
    const { api } = await startService(t)
    const hooks = await startWebhookReceiver(t)
    const folder = t.testdir()
    const source = join(folder, 'source.mpegts')
    const { encryption } = encoder
    await api('start-stream', { stream_id: 'studio', webhook_urls: [hooks.url], encryption })
    const ready = await until('the webhook stream.ready', () => findEvent(hooks, 'stream.ready'))
    t.equal(ready.data['srt_url'].includes('&passphrase='), encryption)

    const { playlist_url: playlistUrl } = (await api('status', { stream_id: 'studio' })).body.data
    const stopViewing = new AbortController()
    t.teardown(() => stopViewing.abort())
    const viewer = record(playlistUrl, stopViewing.signal)
    const [command, args] = encoder.command(source, ready.data['srt_url'])
    const program = start(t, command, args)
    if (!t.equal(await program.exit, 0, `the encoder is content: ${program.output()}`)) return
    await until('the encoder is gone', async () => {
      const { body } = await api('status', { stream_id: 'studio' })
      return body.data['status'] === 'INTERRUPTED'
    })
    await api('stop-stream', { stream_id: 'studio' })
    const recording = await viewer

    t.strictSame(recording.failures, [], 'all that was listed could be fetched')
    t.strictSame(checkPlaylists(recording.playlists), [], 'no rule of RFC 8216 was broken')
    const received = join(folder, 'received.mpegts')
    writeFileSync(received, Buffer.concat([...recording.segments.values()]))
    t.equal(await decodeErrors(received), '', 'decodes in silence')
    t.strictSame(
      await countMedia(received),
      await countMedia(source),
      'nothing lost, nothing added',
    )
    for (const [uri, bytes] of recording.segments) {
      const why = await segmentFault(bytes)
      if (why !== undefined) t.fail(`${uri}: ${why}`)
    }
    t.ok(
      recording.segments.size >= Math.floor(SECONDS / 2.5),
      `${recording.segments.size} segments`,
    )
    const isWarning = (type: string) => type === 'stream.warning'
    t.strictSame(
      receivedTypes(hooks).filter((type) => !isWarning(type)),
      ['stream.ready', 'stream.live', 'stream.interrupted', 'stream.stopped'],
    )
    const warnings = hooks.received
      .filter(({ event }) => isWarning(event.type))
      .map(({ event }) => String(event.data['code']))
    t.strictSame(
      warnings.filter((code) => !OF_SLOW_MACHINES.has(code)),
      [],
    )
  })
}

/** Errors of a segment according to ffprobe and ISO/IEC 13818-1 2.4.3. */
async function segmentFault(bytes: Buffer): Promise<string | undefined> {
  if (bytes.length === 0 || bytes.length % 188 !== 0) return `${bytes.length} bytes`
  const pid = (packet: number) => bytes.readUInt16BE(packet * 188 + 1) & 0x1fff
  const pmtPid = bytes.readUInt16BE(5 + 8 + 2) & 0x1fff
  if (pid(0) !== 0) return 'does not begin with a PAT'
  if (pid(1) !== pmtPid) return 'has no PMT behind its PAT'
  const first = await firstVideoPacket(bytes)
  return first.startsWith('K') ? undefined : `its first frame has the flags "${first}"`
}

function firstVideoPacket(bytes: Buffer): Promise<string> {
  const args =
    '-v error -select_streams v -show_entries packet=flags -of csv=p=0 -read_intervals %+#1 -f mpegts -'
  return new Promise((resolve, reject) => {
    const probe = spawn('ffprobe', args.split(' '), { stdio: ['pipe', 'pipe', 'inherit'] })
    let output = ''
    probe.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    probe.on('error', reject)
    probe.on('close', () => resolve(output.trim()))
    // ffprobe stops reading once it has its result.
    probe.stdin.on('error', () => undefined)
    probe.stdin.end(bytes)
  })
}

function nullPackets(count: number): Buffer {
  const packet = Buffer.alloc(188, 0xff)
  packet.writeUInt32BE(0x471fff10)
  return Buffer.concat(Array.from({ length: count }, () => packet))
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
