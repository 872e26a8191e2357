/**
 * CPU time of each costly stream of test/hostile/attacks behind SRT, beside the nominal time of src/stream/work-budget.ts. The
 * simulated clock follows the bitrate, so a second of a stream takes less than a second.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { PACKET_BYTES } from '../../src/mpegts/packet.ts'
import { PacedStream } from '../../src/pace/paced-stream.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { WorkBudget } from '../../src/stream/work-budget.ts'
import { PUBLISHER_REPORT } from '../../test/stream/publisher-report.ts'
import { COSTLY_STREAMS, payloadsOf } from '../../test/hostile/attacks/costly-streams.ts'

export interface CostLoad {
  readonly bitsPerSecond: number
  /** CPU seconds for each stream. */
  readonly seconds: number
}

export interface CostResult {
  readonly name: string
  /** CPU microseconds per received transport packet, dropped ones included. */
  readonly usPerPacket: number
  /** Nominal microseconds per received transport packet. */
  readonly nominalUsPerPacket: number
  /** Share of dropped payloads. */
  readonly dropped: number
  readonly segmentsPerSecond: number
  /** Entries of the playlist at the end. */
  readonly listed: number
}

const PACKETS_PER_PAYLOAD = 7
const TICK_US = 250_000
const BATCH = 200

/** @returns results, the clean stream first */
export function measureMediaCost(load: CostLoad): CostResult[] {
  const results = [measure('clean: demo.mpegts', demo, load, undefined)]
  for (const [name, make] of Object.entries(COSTLY_STREAMS)) {
    const costly = make()
    results.push(measure(name, () => payloadsOf(costly), load, costly.program))
  }
  return results
}

function measure(
  name: string,
  open: () => Iterator<Buffer>,
  { bitsPerSecond, seconds }: CostLoad,
  program: 'all' | undefined,
): CostResult {
  const payloadUs = (PACKETS_PER_PAYLOAD * PACKET_BYTES * 8 * 1e6) / bitsPerSecond
  const budget = new WorkBudget(0)
  let nowUs = 0
  const stream = new LiveStream('cost', {
    clock: { nowUs: () => nowUs, wallMs: () => nowUs / 1000 },
    cache: new SegmentCache({ maxBytes: 256e6 }),
    ...{ epoch: 'cost', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
    ...{ lingerSec: 60, reconnectGraceSec: Infinity, program, budget },
    ...{ formats: ['ts', 'cmaf'], partSec: 0.2 },
  })
  let segments = 0
  stream.on('segment', () => segments++)
  let payloads = open()
  const connect = () =>
    stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
  let publication = connect()

  /** @returns numbers of payloads and of CPU microseconds */
  const run = (cpuSec: number) => {
    let [pushed, cpuUs, tickedUs] = [0, 0, nowUs]
    while (cpuUs < cpuSec * 1e6 && pushed < 3e5) {
      const batch = Array.from({ length: BATCH }, () => payloads.next().value as Buffer)
      const before = process.cpuUsage()
      for (const payload of batch) {
        nowUs += payloadUs
        publication.push(payload)
        if (nowUs - tickedUs < TICK_US) continue
        tickedUs = nowUs
        stream.tick()
        if (stream.encoder !== undefined) continue
        payloads = open()
        publication = connect()
      }
      const { user, system } = process.cpuUsage(before)
      cpuUs += user + system
      pushed += batch.length
    }
    return { pushed, cpuUs }
  }
  run(seconds / 3)
  const before = { segments, nowUs, dropped: budget.dropped, spentUs: budget.spentUs }
  const { pushed, cpuUs } = run(seconds)
  const packets = pushed * PACKETS_PER_PAYLOAD
  const playlist = stream.files.get('playlist.m3u8')?.chunks.join('') ?? ''
  stream.stop('api')
  stream.discard()
  return {
    name,
    usPerPacket: cpuUs / packets,
    nominalUsPerPacket: (budget.spentUs - before.spentUs) / packets,
    dropped: (budget.dropped - before.dropped) / pushed,
    segmentsPerSecond: (segments - before.segments) / ((nowUs - before.nowUs) / 1e6),
    listed: playlist.match(/\.ts$/gm)?.length ?? 0,
  }
}

/** Repeats the clip endlessly on one timeline. */
function* demo(): Generator<Buffer, never> {
  const clip = readFileSync('fixtures/demo.mpegts')
  const stream = new PacedStream()
  for (;;) {
    for (const { payload } of [...stream.push(clip), ...stream.rewind()]) yield payload
  }
}
