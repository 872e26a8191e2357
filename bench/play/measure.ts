/**
 * What it costs to send one live stream to N readers over SRT, and what that costs its encoder.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startSenders } from '../ingest/senders.ts'
import { readLosses, startService } from '../support/service.ts'
import { kernelDrops, usageOf } from '../support/usage.ts'
import { startWorker } from '../support/worker.ts'
import type { ReaderAnswers, ReadTask } from './reader.ts'

/** From the start of the readers until they are sent everything. */
const WARM_UP_MS = 4000

export interface PlayLoad {
  readonly bitsPerSecond: number
  readonly seconds: number
}

export interface PlayResult {
  readonly readers: number
  /** Packets sent to all readers. */
  readonly packetsPerSec: number
  /** 1 is one core. */
  readonly cpuLoad: number
  readonly cpuUsPerPacket: number
  readonly rssBytes: number
  /** Never delivered to a reader. */
  readonly lostToReaders: number
  /** From the encoder: dropped by the kernel, found missing, given up. */
  readonly kernelDrops: number
  readonly lost: number
  readonly dropped: number
  readonly loopDelayMsMax: number
  /** CPU of the process that reads, for comparison. */
  readonly readerCpuLoad: number
}

export async function measurePlay(
  readers: number,
  { bitsPerSecond, seconds }: PlayLoad,
): Promise<PlayResult> {
  const service = await startService({ env: { SRT_MAX_READERS: String(2 * readers + 1) } })
  const url = await service.start('bench-0')
  const senders = await startSenders([url], {
    ...{ sender: 'millrace', senders: 1, spreadMs: 0 },
    ...{ bitsPerSecond, seconds: seconds + 60 },
  })
  const task: ReadTask = {
    url: `srt://127.0.0.1:${service.srtPort}?streamid=mode=request,rid=bench-0`,
    readers,
  }
  const reader = await startWorker<ReaderAnswers>(new URL('reader.js', import.meta.url), task)
  try {
    await Promise.race([sleep(WARM_UP_MS), senders.failure, reader.failure])
    const measure = async () => ({
      packets: (await reader.ask('report')).packets,
      ownSec: usageOf([service.pid]).cpuSec,
      readerSec: usageOf([reader.pid]).cpuSec,
    })
    const before = await measure()
    const dropsBefore = kernelDrops([service.srtPort])
    await Promise.race([sleep(seconds * 1000), senders.failure, reader.failure])
    const after = await measure()
    const { lost: lostToReaders } = await reader.ask('report')
    const packets = after.packets - before.packets
    const cpuSec = after.ownSec - before.ownSec
    const { load: delays, lost, dropped } = await readLosses(service, ['bench-0'])
    return {
      readers,
      packetsPerSec: packets / seconds,
      cpuLoad: cpuSec / seconds,
      cpuUsPerPacket: (cpuSec / packets) * 1e6,
      rssBytes: usageOf([service.pid]).rssBytes,
      lostToReaders,
      kernelDrops: kernelDrops([service.srtPort]) - dropsBefore,
      lost,
      dropped,
      loopDelayMsMax: delays.loop_delay_ms_max,
      readerCpuLoad: (after.readerSec - before.readerSec) / seconds,
    }
  } finally {
    await Promise.all([senders.stop(), reader.stop()])
    await service.stop()
  }
}
