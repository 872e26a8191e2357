/**
 * The system benches: reads the flags, measures, prints.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { measureHttp } from './http/measure.ts'
import { formatHttp } from './http/report.ts'
import { availableReceivers, measureIngest } from './ingest/measure.ts'
import { formatIngest } from './ingest/report.ts'
import { measureScenario, SCENARIOS } from './srt-loss/measure.ts'
import { formatLoss } from './srt-loss/report.ts'

/** Name -> default, least, most: a bench ends by itself and harms nobody. */
const FLAGS = {
  mbit: [5, 1, 100],
  seconds: [10, 1, 300],
  rounds: [3, 1, 20],
  connections: [16, 1, 1000],
  publishers: [20, 1, 500],
  senders: [1, 1, 8],
  seed: [1, 1, 1e6],
} as const

const USAGE = `usage: npm run bench -- [http | ingest | srt-loss] [--flag number …]

  http     a playlist and a segment of a live stream, delivered by Millrace and by nginx
           --mbit, --connections, --seconds (of a run), --rounds
  ingest   live streams received by Millrace, srt-live-transmit and ffmpeg
           --publishers, --mbit (each), --seconds, --senders (processes that publish)
  srt-loss one stream over bad networks, between Millrace and srt-live-transmit in all directions
           --mbit (8), --seconds (300, for each of four networks), --seed
`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(
      Object.keys(FLAGS).map((name) => [name, { type: 'string' as const }]),
    ),
  })
  const flag = (name: keyof typeof FLAGS, benchPreset?: number): number => {
    const [preset, least, most] = FLAGS[name]
    const value = Number(values[name] ?? benchPreset ?? preset)
    if (value >= least && value <= most) return value
    throw new RangeError(`--${name} takes a number from ${least} to ${most}\n\n${USAGE}`)
  }
  const [bench = 'http'] = positionals
  if (bench === 'http') {
    const load = {
      bitsPerSecond: flag('mbit') * 1e6,
      connections: flag('connections'),
      seconds: flag('seconds'),
      rounds: flag('rounds'),
    }
    print(`HTTP: one live stream of ${flag('mbit')} Mbit/s, ${load.connections} connections`)
    print(formatHttp(await measureHttp(load)))
  } else if (bench === 'ingest') {
    const load = {
      publishers: flag('publishers'),
      bitsPerSecond: flag('mbit') * 1e6,
      seconds: flag('seconds'),
      senders: flag('senders'),
    }
    print(`Ingest: ${load.publishers} publishers of ${flag('mbit')} Mbit/s, ${load.seconds} s`)
    const results = []
    for (const name of availableReceivers()) results.push(await measureIngest(name, load))
    print(formatIngest(results))
  } else if (bench === 'srt-loss') {
    const load = {
      bitsPerSecond: flag('mbit', 8) * 1e6,
      seconds: flag('seconds', 300),
      seed: flag('seed'),
    }
    print(
      `SRT: ${load.bitsPerSecond / 1e6} Mbit/s, RTT 100 ms, ${load.seconds} s, seed ${load.seed}`,
    )
    for (const scenario of SCENARIOS) {
      print(`\n${scenario.name}, latency ${scenario.latencyMs} ms`)
      print(formatLoss(await measureScenario(scenario, load)))
    }
  } else throw new RangeError(USAGE)
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
