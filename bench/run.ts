/**
 * Runs a system bench by name and prints its report.
 *
 * @module
 */
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { measureBackup } from './backup/measure.ts'
import { FAULTS } from './cluster/faults.ts'
import { measureFault } from './cluster/measure.ts'
import { formatCluster } from './cluster/report.ts'
import { measureEndurance } from './endurance/measure.ts'
import { formatEndurance, formatSample } from './endurance/report.ts'
import { Flags } from './flags.ts'
import { measureHttp, type HttpResult } from './http/measure.ts'
import { formatHttp, httpFigures } from './http/report.ts'
import { SCENARIO_NAMES } from './http/scenarios.ts'
import { ARCHIVES, availableReceivers, BACKUPS, measureIngest } from './ingest/measure.ts'
import { measureOverload } from './ingest/overload.ts'
import {
  formatIngest,
  formatOverload,
  formatSurge,
  ingestFigures,
  overloadFigures,
} from './ingest/report.ts'
import { SENDERS } from './ingest/senders.ts'
import { measureSurge } from './ingest/surge.ts'
import { measureEncoder } from './latency/encoder.ts'
import { measureLatency, SETUPS } from './latency/measure.ts'
import { formatEncoder, formatLatency, latencyFigures } from './latency/report.ts'
import { measureMediaCost } from './media-cost/measure.ts'
import { formatMediaCost } from './media-cost/report.ts'
import { measureMetrics } from './metrics/measure.ts'
import { formatMetrics } from './metrics/report.ts'
import { measureMpegts } from './mpegts/measure.ts'
import { formatMpegts } from './mpegts/report.ts'
import { measureOperation, SETUPS as OPERATION_SETUPS } from './operation/measure.ts'
import { formatOperation } from './operation/report.ts'
import { measurePlay } from './play/measure.ts'
import { formatPlay, playFigures } from './play/report.ts'
import { measurePlayers, SETUPS as PLAYERS_SETUPS } from './players/measure.ts'
import { formatPlayers } from './players/report.ts'
import { measureRegistry } from './registry/measure.ts'
import { formatRegistry } from './registry/report.ts'
import { measureRelease, SETUPS as RELEASE_SETUPS } from './release/measure.ts'
import { formatRelease, releaseFigures } from './release/report.ts'
import { writeResults } from './results.ts'
import { canReceive, measureSrt, RECEIVERS } from './srt/measure.ts'
import { formatSrt } from './srt/report.ts'
import { measureFlood } from './srt-flood/measure.ts'
import { formatFlood } from './srt-flood/report.ts'
import { measureLoss, NETWORKS } from './srt-loss/measure.ts'
import { PEERS } from './srt-loss/peers.ts'
import { formatLoss } from './srt-loss/report.ts'
import { leaveFigures, type Figures } from './support/figures.ts'

const USAGE = `usage: npm run bench -- [backup | cluster | endurance | http | ingest | latency | media-cost | metrics | mpegts | operation | play |
  players | registry | release | results | srt | srt-flood | srt-loss] [--flag value …]; with --write, bench/RESULTS.md is written afterwards

  backup     segments of many streams in Redis: CPU of redis-server and of the process, memory
  cluster    what viewers at three edges see when a node, an edge or Redis fails, in real processes
             --viewers (100), --seconds (of the series, 300), --only (${FAULTS.map(({ name }) => name).join(', ')})
  endurance  hours of live streams by a fast clock, without SRT: whether memory grows
             --publishers (20), --mbit (each, 0.8), --hours (8), --speed (50 times real time, at most),
             --failover-sec (between two failures of a main encoder that has a backup; default: no backups)
  http       playlists, segments, parts and viewers, by Millrace, nginx, bare node:http and bare Fastify
             --connections, --seconds (of a round, 1), --rounds, --workers (0; or 0,1,2: each of them), --profile,
             --json FILE, --only (some of ${SCENARIO_NAMES.join(',')})
  ingest     live streams received by Millrace, srt-live-transmit and ffmpeg
             --publishers, --mbit (each), --seconds, --in-phase, --cache-mib, --sender (${SENDERS.join(', ')}),
             --senders (processes of the first), --ingest-workers (1), --only;
             --overload: of more publishers than it can read, who keeps his packets (Millrace alone, libsrt senders);
             --surge: of one publisher that sends ten times its rate, what the others lose (likewise);
             --backups: Millrace alone, without and with a backup encoder of each stream;
             --archives: without and with an archive, and with a store that never answers
  latency    glass to glass: from the capture of a frame to its display in Chromium
             --seconds (60, each), --only (${SETUPS.map(({ name }) => name).join(', ')})
  media-cost transport streams that cost more than their bytes, behind SRT
             --mbit (10), --seconds (1, of CPU for each)
  metrics    scrapes of /metrics with many live streams: their time, and the delay of the event loop
             --streams (1000), --rounds (scrapes, 20)
  mpegts     a file through demuxer, segmenter and playlist on one core, and through ffmpeg
             --mbit (2, 8 and 40), --rounds
  operation  what viewers, then scrapes and an open dashboard as well, cost the publishers (libsrt senders)
             --publishers, --mbit (each), --viewers (200), --seconds (60, each), --workers (0),
             --ingest-workers (1), --only (${OPERATION_SETUPS.map(({ name }) => name).join(', ')})
  play       one live stream sent to readers over SRT: CPU a packet, and what its encoder loses
             --readers (1, 10 and 50), --mbit (5), --seconds (10)
  players    players as published on one live stream: errors, standstills of the picture, skipped media
             --seconds (60, each), --only (some of ${PLAYERS_SETUPS.map(({ name }) => name).join(',')})
  registry   calls of the registry in Redis with many streams: their time, and the CPU of redis-server
             --streams (1000), --rounds (calls of each kind for each stream, 5)
  release    low latency: from a complete part to the last byte at each of many viewers
             --mbit (2), --seconds (30, each), --only (${RELEASE_SETUPS.map(({ name }) => name).join(', ')})
  results    writes bench/RESULTS.md from what the benches have left in bench/results, and measures nothing
  srt        streams received and thrown away, by our listener, a bare socket and srt-live-transmit
             --connections (1, 10, 100 and 500), --mbit (each), --seconds, --senders (2),
             --encrypted or --no-encrypted (both), --only (${RECEIVERS.join(', ')})
  srt-flood  a flood of handshakes on the port of publishers
             --publishers (3), --mbit (each, 2), --seconds (20)
  srt-loss   one stream over four bad networks, to Millrace and srt-live-transmit at the same time
             --mbit (8), --seconds (300, each network), --seed, --sender (${PEERS.join(', ')}),
             --only (${NETWORKS.map(({ name }) => name).join(', ')})
`

/** Numbers of delivery workers that the HTTP bench takes. */
const WORKERS = ['0', '1', '2', '3', '4']

/** Spread of key frames, since real encoders are not in phase. */
const SPREAD_MS = 2000

const BENCHES: Readonly<Record<string, (flags: Flags) => Promise<void>>> = {
  backup: async (flags) => {
    const load = {
      streams: flags.number('streams', 40),
      bitsPerSecond: flags.number('mbit', 5) * 1e6,
    }
    print(`Backup of ${load.streams} streams of ${load.bitsPerSecond / 1e6} Mbit/s, ${busy()}`)
    report(flags, await measureBackup(load))
  },

  cluster: async (flags) => {
    const load = { viewers: flags.number('viewers', 100), seconds: flags.number('seconds', 300) }
    const names = FAULTS.map(({ name }) => name)
    const only = flags.someOf('only', names) ?? names
    print(`Cluster with ${load.viewers} viewers, ${busy()}`)
    const results = []
    for (const fault of FAULTS.filter(({ name }) => only.includes(name))) {
      const result = await measureFault(fault, load)
      print(`\n${formatCluster([result])}`)
      results.push(result)
    }
    leave(flags, formatCluster(results))
  },

  endurance: async (flags) => {
    const load = {
      streams: flags.number('publishers'),
      bitsPerSecond: flags.number('mbit', 0.8) * 1e6,
      hours: flags.number('hours'),
      speed: flags.number('speed'),
      failoverSec: flags.optional('failover-sec'),
    }
    print(`Endurance: ${load.streams} streams for ${load.hours} hours, ${busy()}`)
    let isFirst = true
    const result = await measureEndurance(load, (sample) => {
      print(formatSample(sample, isFirst))
      isFirst = false
    })
    report(flags, formatEndurance(result))
  },

  http: async (flags) => {
    const load = {
      connections: flags.number('connections'),
      seconds: Math.ceil(flags.number('seconds', 1)),
      rounds: flags.number('rounds'),
      only: flags.someOf('only', SCENARIO_NAMES),
      workers: (flags.someOf('workers', WORKERS) ?? ['0']).map(Number),
      isProfiled: flags.profile,
    }
    print(`HTTP: ${load.connections} connections, ${load.rounds} × ${load.seconds} s, ${busy()}`)
    const onResult = (result: HttpResult) => print(`\n${formatHttp(result)}`)
    const result = await measureHttp(load, { note: print, onResult })
    if (flags.json !== undefined) {
      writeFileSync(flags.json, `${JSON.stringify({ load, ...result }, undefined, 2)}\n`)
    }
    leave(flags, formatHttp(result), httpFigures(result))
  },

  ingest: async (flags) => {
    const load = {
      publishers: flags.number('publishers'),
      bitsPerSecond: flags.number('mbit') * 1e6,
      seconds: flags.number('seconds'),
      sender: flags.oneOf('sender', SENDERS) ?? 'millrace',
      senders: flags.number('senders'),
      spreadMs: flags.inPhase ? 0 : SPREAD_MS,
      cacheMib: flags.optional('cache-mib'),
      ingestWorkers: flags.number('ingest-workers'),
    }
    print(
      `Ingest: ${load.publishers} publishers of ${flags.number('mbit')} Mbit/s, ${load.seconds} s, ${busy()}`,
    )
    if (flags.overload) {
      const result = await measureOverload(load)
      report(flags, formatOverload(result), overloadFigures(load, result))
      return
    }
    if (flags.surge) {
      report(flags, formatSurge(await measureSurge(load)))
      return
    }
    const own = flags.backups ? BACKUPS : flags.archives ? ARCHIVES : undefined
    const receivers = own ?? availableReceivers(load)
    const only = flags.oneOf('only', receivers)
    const results = []
    for (const name of receivers.filter((name) => name === (only ?? name)))
      results.push(await measureIngest(name, load))
    report(flags, formatIngest(results), ingestFigures(load, results))
  },

  latency: async (flags) => {
    const seconds = flags.number('seconds', 60)
    const only = flags.oneOf(
      'only',
      SETUPS.map(({ name }) => name),
    )
    print(`Glass to glass, ${seconds} s each, ${busy()}`)
    const results = []
    for (const setup of SETUPS.filter(({ name }) => name === (only ?? name))) {
      results.push(await measureLatency(setup, seconds))
    }
    const encoder = formatEncoder(await measureEncoder(Math.min(seconds, 10)))
    report(flags, `${formatLatency(results)}\n${encoder}`, latencyFigures(results))
  },

  'media-cost': async (flags) => {
    const mbit = flags.number('mbit', 10)
    print(`Media behind SRT at ${mbit} Mbit/s, ${busy()}`)
    const load = { bitsPerSecond: mbit * 1e6, seconds: flags.number('seconds', 1) }
    report(flags, formatMediaCost(measureMediaCost(load)))
  },

  metrics: async (flags) => {
    const load = { streams: flags.number('streams'), scrapes: flags.number('rounds', 20) }
    print(`Metrics of ${load.streams} live streams, ${load.scrapes} scrapes, ${busy()}`)
    report(flags, formatMetrics(await measureMetrics(load)))
  },

  mpegts: async (flags) => {
    print(`MPEG-TS to HLS, for each second of CPU, ${busy()}`)
    const results = []
    for (const mbit of flags.numbers('mbit', [2, 8, 40])) {
      results.push(await measureMpegts(mbit * 1e6, flags.number('rounds')))
    }
    report(flags, formatMpegts(results))
  },

  operation: async (flags) => {
    const mbit = flags.number('mbit')
    const load = {
      publishers: flags.number('publishers'),
      bitsPerSecond: mbit * 1e6,
      viewers: flags.number('viewers'),
      seconds: flags.number('seconds', 60),
      workers: Number(flags.someOf('workers', WORKERS)?.[0] ?? 0),
      ingestWorkers: flags.number('ingest-workers'),
    }
    const only = flags.oneOf(
      'only',
      OPERATION_SETUPS.map(({ name }) => name),
    )
    print(
      `Operation: ${load.publishers} publishers of ${mbit} Mbit/s, ${load.seconds} s, ${busy()}`,
    )
    const results = []
    const setups = OPERATION_SETUPS.filter(
      ({ name, isKilled }) => name === (only ?? name) && !(isKilled && load.workers === 0),
    )
    for (const setup of setups) {
      results.push(await measureOperation(setup, load))
    }
    report(flags, formatOperation(results))
  },

  play: async (flags) => {
    const load = {
      bitsPerSecond: flags.number('mbit') * 1e6,
      seconds: flags.number('seconds'),
    }
    print(`Play over SRT: ${load.bitsPerSecond / 1e6} Mbit/s, ${load.seconds} s, ${busy()}`)
    const results = []
    for (const readers of flags.numbers('readers', [1, 10, 50])) {
      results.push(await measurePlay(readers, load))
    }
    report(flags, formatPlay(results), playFigures(load, results))
  },

  players: async (flags) => {
    const seconds = flags.number('seconds', 60)
    const names = PLAYERS_SETUPS.map(({ name }) => name)
    const only = flags.someOf('only', names) ?? names
    print(`Players, ${seconds} s each, ${busy()}`)
    const results = []
    for (const setup of PLAYERS_SETUPS.filter(({ name }) => only.includes(name)))
      results.push(...(await measurePlayers(setup, seconds)))
    report(flags, formatPlayers(results))
  },

  registry: async (flags) => {
    const load = { streams: flags.number('streams'), rounds: flags.number('rounds', 5) }
    print(`Registry of ${load.streams} streams, ${busy()}`)
    report(flags, formatRegistry(await measureRegistry(load)))
  },

  release: async (flags) => {
    const mbit = flags.number('mbit', 2)
    const load = { bitsPerSecond: mbit * 1e6, seconds: flags.number('seconds', 30) }
    const only = flags.oneOf(
      'only',
      RELEASE_SETUPS.map(({ name }) => name),
    )
    const results = []
    for (const setup of RELEASE_SETUPS.filter(({ name }) => name === (only ?? name))) {
      print(`${setup.viewers} viewers of ${mbit} Mbit/s, ${load.seconds} s, ${busy()}`)
      results.push(await measureRelease(setup, load))
    }
    report(flags, formatRelease(results), releaseFigures(results))
  },

  results: async () => print(`written: ${await writeResults()}`),

  srt: async (flags) => {
    const only = flags.oneOf('only', RECEIVERS)
    const receivers = RECEIVERS.filter((name) => name === (only ?? name))
    const ciphers = flags.encrypted === undefined ? [false, true] : [flags.encrypted]
    const tables: string[] = []
    for (const connections of flags.numbers('connections', [1, 10, 100, 500])) {
      const mbit = flags.number('mbit', connections > 100 ? 0.5 : 5)
      const loads = ciphers.map((encrypted) => ({
        connections,
        bitsPerSecond: mbit * 1e6,
        encrypted,
        seconds: flags.number('seconds'),
        senders: flags.number('senders', 2),
      }))
      const title = `SRT: ${connections} connections of ${mbit} Mbit/s, ${loads[0]!.seconds} s`
      print(`\n${title}, ${busy()}`)
      const results = []
      for (const load of loads) {
        for (const name of receivers.filter((name) => canReceive(name, load))) {
          results.push(await measureSrt(name, load))
        }
      }
      print(formatSrt(results))
      tables.push(`${title}\n${formatSrt(results)}`)
    }
    leave(flags, tables.join('\n\n'))
  },

  'srt-flood': async (flags) => {
    const load = {
      publishers: flags.number('publishers', 3),
      bitsPerSecond: flags.number('mbit', 2) * 1e6,
      seconds: flags.number('seconds', 20),
    }
    print(`A flood of ${load.seconds} s, ${busy()}`)
    report(flags, formatFlood(await measureFlood(load)))
  },

  'srt-loss': async (flags) => {
    const load = {
      sender: flags.oneOf('sender', PEERS) ?? 'srt-live-transmit',
      bitsPerSecond: flags.number('mbit', 8) * 1e6,
      seconds: flags.number('seconds', 300),
      seed: flags.number('seed'),
    }
    const mbit = load.bitsPerSecond / 1e6
    print(`SRT: ${mbit} Mbit/s from ${load.sender}, RTT 100 ms, ${load.seconds} s, ${busy()}`)
    const only = flags.oneOf(
      'only',
      NETWORKS.map(({ name }) => name),
    )
    const tables: string[] = []
    for (const network of NETWORKS.filter(({ name }) => name === (only ?? name))) {
      const title = `${network.title}, latency ${network.latencyMs} ms`
      print(`\n${title}`)
      const table = formatLoss(await measureLoss(network, load))
      print(table)
      tables.push(`${title}\n${table}`)
    }
    leave(flags, tables.join('\n\n'))
  },
}

/** @returns the load average, since other load changes the figures */
function busy(): string {
  return `load average ${loadavg()[0]!.toFixed(1)}`
}

async function main(): Promise<void> {
  const flags = new Flags()
  const bench = BENCHES[flags.bench]
  if (bench === undefined) throw new RangeError(USAGE)
  await bench(flags)
  if (flags.write) print(`written: ${await writeResults()}`)
}

/** Prints tables, and leaves them with their figures for `bench/RESULTS.md`. */
function report(flags: Flags, text: string, figures?: Figures): void {
  print(text)
  leave(flags, text, figures)
}

function leave({ bench, args }: Flags, text: string, figures: Figures = {}): void {
  leaveFigures(bench, text, { figures, args })
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    process.stderr.write(`${error instanceof RangeError ? error.message : String(error)}\n`)
    process.exit(1)
  },
)
