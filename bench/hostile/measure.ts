/**
 * Runs one attack on a service and measures the effect on other clients.
 *
 *   publisher, viewer, new encoders ─► service ◄─ attacker          one process each
 *                   20 more viewers ─►
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { writeCertificate } from '../../test/support/certificate.ts'
import { fetchInsecurely } from '../http/exchange.ts'
import { startService, type ServiceOptions } from '../support/service.ts'
import type {
  LiveViewersAnswers,
  LiveViewersReport,
  LiveViewersTask,
} from '../support/live-viewers.ts'
import { childrenOf, usageOf } from '../support/usage.ts'
import { startWorker } from '../support/worker.ts'
import type { AttackerAnswers, AttackerTask } from './attacker.ts'
import type { Attack } from './attacks.ts'
import type { BystandersAnswers, BystandersReport, BystandersTask } from './bystanders.ts'

const BITS_PER_SECOND = 5_000_000
/** Time until the stream is live and the code compiled. */
const WARM_UP_MS = 10_000
/** Time after an attack until its state has expired. */
const RECOVERY_MS = 15_000
const RSS_SAMPLE_MS = 250
const MIB = 1024 * 1024
/** Memory for each byte of media. */
const MEDIA_FACTOR = 1.15
/** Time for which segments of the publisher stay in the cache. */
const CACHED_MS = 60_000
/** Viewers who fetch every segment. */
const VIEWERS = 20

export type AttackedService = Required<Pick<ServiceOptions, 'workers' | 'ingestWorkers'>>

export interface AttackResult extends BystandersReport {
  readonly name: string
  readonly seconds: number
  /** The attack's own description of the result. */
  readonly attack: object
  /** CPU of the service in cores, without and with the attack. */
  readonly cpuBefore: number
  readonly cpuDuring: number
  readonly rssBytes: { readonly before: number; readonly max: number; readonly after: number }
  /** Media that the publisher has added to the cache between `before` and `after`: its window has not been full. */
  readonly mediaBytes: number
  /** Bound of RSS: that before the attack, and the media that the settings allow. Undefined: not checked. */
  readonly maxRssBytes: number | undefined
  /** Datagrams that the publisher sent, those lost on the way, repaired or not, and those never delivered. */
  readonly sent: number
  readonly lost: number
  readonly dropped: number
  readonly viewers: LiveViewersReport
}

/** @throws when the service ends during the attack, or closes the connection of a viewer */
export async function measureAttack(
  attack: Attack,
  { workers, ingestWorkers }: AttackedService,
): Promise<AttackResult> {
  const files: (() => void)[] = []
  const certificate =
    attack.tls === true && writeCertificate({ teardown: (act) => files.push(act) })
  const service = await startService({
    env: {
      ...attack.env,
      ...(certificate && { TLS_CERT: certificate.cert, TLS_KEY: certificate.key }),
    },
    ...(certificate && { fetch: fetchInsecurely }),
    ...{ workers, ingestWorkers },
    nodeArgs: attack.nodeArgs ?? [],
  })
  const newcomerUrls = []
  for (let index = 0; index < attack.seconds; index++) {
    newcomerUrls.push(await service.start(`newcomer-${index}`))
  }
  const playlistUrl = `${service.httpUrl}/video/bystander/playlist.m3u8`
  const bystanders = await startWorker<BystandersAnswers>(
    new URL('bystanders.js', import.meta.url),
    {
      publishUrl: await service.start('bystander'),
      playlistUrl,
      bitsPerSecond: BITS_PER_SECOND,
      newcomerUrls,
    } satisfies BystandersTask,
  )
  const attacker = await startWorker<AttackerAnswers>(new URL('attacker.js', import.meta.url), {
    attack: attack.name,
    target: {
      host: '127.0.0.1',
      httpPort: Number(new URL(service.httpUrl).port),
      srtPort: service.srtPort,
      ...(attack.env?.['SRTLA_PORT'] && { srtlaPort: Number(attack.env['SRTLA_PORT']) }),
      hmacSecret: service.hmacSecret,
      jwtSecret: service.jwtSecret,
      pid: service.pid,
    },
  } satisfies AttackerTask)
  const viewers = await startWorker<LiveViewersAnswers>(
    new URL('../support/live-viewers.js', import.meta.url),
    { playlistUrls: [playlistUrl], viewers: VIEWERS } satisfies LiveViewersTask,
  )
  try {
    await sleep(WARM_UP_MS)
    await viewers.ask('open')
    const cpuBefore = await cpuShare(service.pid, 3000)
    const durationMs = attack.seconds * 1000
    await viewers.ask('report')
    const [report, figures, cpuDuring, rss] = await Promise.all([
      bystanders.ask('watch', durationMs),
      attacker.ask('carryOut', durationMs),
      cpuShare(service.pid, durationMs),
      watchRss(service.pid, durationMs),
    ])
    const viewersReport = await viewers.ask('report')
    await attacker.stop()
    await sleep(RECOVERY_MS)
    const { publisher, live } = await service.status('bystander')
    if (!live || publisher === undefined) throw new Error('the publisher lost its connection')
    const { sent, dropped } = await bystanders.ask('finish')
    return {
      name: attack.name,
      seconds: attack.seconds,
      attack: figures,
      ...report,
      cpuBefore,
      cpuDuring,
      rssBytes: { ...rss, after: usageOf(processesOf(service.pid)).rssBytes },
      mediaBytes: cachedBytes(Math.min(durationMs + RECOVERY_MS, CACHED_MS)),
      maxRssBytes:
        attack.allowedMib && rss.before + MEDIA_FACTOR * allowedBytes(attack.allowedMib, workers),
      sent,
      lost: publisher!.packets_lost,
      dropped: publisher!.packets_dropped + dropped,
      viewers: viewersReport,
    }
  } finally {
    await Promise.all([attacker, viewers, bystanders, service].map((each) => each.stop()))
    for (const remove of files) remove()
  }
}

/** Memory of the publisher's media of this time. */
function cachedBytes(durationMs: number): number {
  return (MEDIA_FACTOR * (BITS_PER_SECOND / 8) * durationMs) / 1000
}

/** Media that the settings allow in memory, in bytes. A worker has a quarter of the cache besides the ingest process. */
function allowedBytes({ cache, buffered }: { cache: number; buffered: number }, workers: number) {
  return (cache * (1 + workers / 4) + buffered) * MIB
}

/** The service, or the supervisor and its children. */
function processesOf(pid: number): number[] {
  return [pid, ...childrenOf(pid)]
}

async function cpuShare(pid: number, durationMs: number): Promise<number> {
  const { cpuSec } = usageOf(processesOf(pid))
  const startMs = performance.now()
  await sleep(durationMs)
  return (usageOf(processesOf(pid)).cpuSec - cpuSec) / ((performance.now() - startMs) / 1000)
}

async function watchRss(pid: number, durationMs: number) {
  const before = usageOf(processesOf(pid)).rssBytes
  let max = before
  for (const endMs = performance.now() + durationMs; performance.now() < endMs;) {
    await sleep(RSS_SAMPLE_MS)
    max = Math.max(max, usageOf(processesOf(pid)).rssBytes)
  }
  return { before, max }
}
