/**
 * Runs one attack on a service and measures the effect on other clients.
 *
 *   publisher, viewer, new encoders ─► service ◄─ attacker          one process each
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../support/service.ts'
import { usageOf } from '../support/usage.ts'
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

export interface AttackResult extends BystandersReport {
  readonly name: string
  readonly seconds: number
  /** The attack's own description of the result. */
  readonly attack: object
  /** CPU of the service in cores, without and with the attack. */
  readonly cpuBefore: number
  readonly cpuDuring: number
  readonly rssBytes: { readonly before: number; readonly max: number; readonly after: number }
  /** Datagrams that the publisher sent, and those that the service did not deliver. */
  readonly sent: number
  readonly lost: number
}

/** @throws when the service ends during the attack */
export async function measureAttack(attack: Attack): Promise<AttackResult> {
  const service = await startService({ env: attack.env ?? {}, nodeArgs: attack.nodeArgs ?? [] })
  const newcomerUrls = []
  for (let index = 0; index < attack.seconds; index++) {
    newcomerUrls.push(await service.start(`newcomer-${index}`))
  }
  const bystanders = await startWorker<BystandersAnswers>(
    new URL('bystanders.js', import.meta.url),
    {
      publishUrl: await service.start('bystander'),
      playlistUrl: `${service.httpUrl}/video/bystander/playlist.m3u8`,
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
      hmacSecret: service.hmacSecret,
      jwtSecret: service.jwtSecret,
      pid: service.pid,
    },
  } satisfies AttackerTask)
  try {
    await sleep(WARM_UP_MS)
    const cpuBefore = await cpuShare(service.pid, 3000)
    const durationMs = attack.seconds * 1000
    const [report, figures, cpuDuring, rss] = await Promise.all([
      bystanders.ask('watch', durationMs),
      attacker.ask('carryOut', durationMs),
      cpuShare(service.pid, durationMs),
      watchRss(service.pid, durationMs),
    ])
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
      rssBytes: { ...rss, after: usageOf([service.pid]).rssBytes },
      sent,
      lost: publisher!.packets_dropped + dropped,
    }
  } finally {
    await Promise.all([attacker, bystanders, service].map((each) => each.stop()))
  }
}

async function cpuShare(pid: number, durationMs: number): Promise<number> {
  const { cpuSec } = usageOf([pid])
  const startMs = performance.now()
  await sleep(durationMs)
  return (usageOf([pid]).cpuSec - cpuSec) / ((performance.now() - startMs) / 1000)
}

async function watchRss(pid: number, durationMs: number) {
  const before = usageOf([pid]).rssBytes
  let max = before
  for (const endMs = performance.now() + durationMs; performance.now() < endMs;) {
    await sleep(RSS_SAMPLE_MS)
    max = Math.max(max, usageOf([pid]).rssBytes)
  }
  return { before, max }
}
