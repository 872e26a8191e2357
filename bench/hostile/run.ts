/**
 * `npm run hostile -- [--only NAME,NAME] [--workers N] [--ingest-workers N]`: runs every attack of attacks.ts beside a publisher, viewers and
 * new encoders. Ends with an error when one of them was affected. 10,000 idle connections need as many open files in the
 * service and in the attacker: where the limit is lower, the attacks run in a child with a higher one, as far as allowed.
 *
 * @module
 */
import { spawnSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { ATTACKS } from './attacks.ts'
import { maxOpenFiles } from '../../src/http/guard/open-files.ts'
import { measureAttack, type AttackResult } from './measure.ts'
import { formatAttacks, harmOf } from './report.ts'

/** Open files of the service with 10,000 connections, and its reserve. */
const MIN_OPEN_FILES = 12_000

raiseOpenFiles()
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    workers: { type: 'string', default: '0' },
    'ingest-workers': { type: 'string', default: '1' },
  },
})
const only = values.only?.split(',')
const attacks = ATTACKS.filter(({ name }) => only?.includes(name) ?? true)
if (attacks.length === 0) {
  throw new RangeError(`--only takes ${ATTACKS.map(({ name }) => name).join(', ')}`)
}

const results: AttackResult[] = []
const harm: string[] = []
for (const attack of attacks) {
  print(`${attack.name}, ${attack.seconds} s, load average ${loadavg()[0]!.toFixed(1)}`)
  try {
    const result = await measureAttack(attack, {
      workers: Number(values.workers),
      ingestWorkers: Number(values['ingest-workers']),
    })
    print(`  ${JSON.stringify(result.attack)}`)
    results.push(result)
    note(...harmOf(result).map((sentence) => `${attack.name}: ${sentence}`))
  } catch (error) {
    note(`${attack.name}: ${(error as Error).message}`)
  }
}
print(`\n${formatAttacks(results)}\n`)
for (const sentence of harm) print(sentence)
process.exit(harm.length > 0 ? 1 : 0)

function note(...sentences: string[]): void {
  harm.push(...sentences)
  for (const sentence of sentences) print(`  ${sentence}`)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Runs this program again with a higher limit, which its children inherit, and ends; without the right to, goes on. */
function raiseOpenFiles(): void {
  if (maxOpenFiles() >= MIN_OPEN_FILES) return
  const raise = `ulimit -n ${MIN_OPEN_FILES}`
  if (spawnSync('sh', ['-c', raise]).status !== 0) {
    print(`open files: ${maxOpenFiles()}, expected ${MIN_OPEN_FILES} for all idle connections`)
    return
  }
  const command = [process.execPath, ...process.argv.slice(1)]
  const child = spawnSync('sh', ['-c', `${raise} && exec "$@"`, 'sh', ...command], {
    stdio: 'inherit',
  })
  process.exit(child.status ?? 1)
}
