/**
 * `npm run hostile -- [--only NAME,NAME]`: runs every attack of attacks.ts beside a publisher, a viewer and new
 * encoders. Ends with an error when one of them was affected.
 *
 * @module
 */
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { ATTACKS } from './attacks.ts'
import { measureAttack, type AttackResult } from './measure.ts'
import { formatAttacks, harmOf } from './report.ts'

const { values } = parseArgs({ options: { only: { type: 'string' } } })
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
    const result = await measureAttack(attack)
    print(`  ${JSON.stringify(result.attack)}`)
    results.push(result)
    harm.push(...harmOf(result).map((sentence) => `${attack.name}: ${sentence}`))
  } catch (error) {
    harm.push(`${attack.name}: ${(error as Error).message}`)
  }
}
print(`\n${formatAttacks(results)}\n`)
for (const sentence of harm) print(sentence)
process.exit(harm.length > 0 ? 1 : 0)

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
