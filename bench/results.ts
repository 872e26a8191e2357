/**
 * `bench/RESULTS.md`: the figures that benches have left, beside their aims, and the tables of their last runs.
 *
 * @module
 */
import { readdirSync, writeFileSync } from 'node:fs'
import { format } from 'prettier'
import { AIMS, type Aim, type AimKey } from './aims.ts'
import { readResults, RESULTS, type BenchResults, type Run } from './support/figures.ts'

const PAGE = 'bench/RESULTS.md'

const INTRODUCTION = `# Results

Written by \`npm run bench -- results\` from what the latest runs of the benches have left in \`${RESULTS}\`; not edited by hand.
[README.md](README.md) says how each figure is measured. All load comes from the same machine, and shares its cores with the
server: ratios to a peer in the same run count, seconds do not. A figure that no run has measured says so.
`

/** @returns path of the page */
export async function writeResults(): Promise<string> {
  writeFileSync(PAGE, await format(renderResults(readAll()), { parser: 'markdown' }))
  return PAGE
}

function readAll(): Map<string, BenchResults> {
  const names = readdirSync(RESULTS).flatMap((file) => /^(.+)\.json$/.exec(file)?.[1] ?? [])
  return new Map(names.toSorted().map((name) => [name, readResults(name)!]))
}

/** @param results  by bench */
export function renderResults(results: ReadonlyMap<string, BenchResults>): string {
  const sections = [...results].flatMap(([bench, { reports }]) => [
    `## ${bench}\n`,
    ...reports.map(({ run, text }) => `${describe(run)}\n\n\`\`\`text\n${text.trim()}\n\`\`\`\n`),
  ])
  return [INTRODUCTION, renderAims(results), ...sections].join('\n')
}

function renderAims(results: ReadonlyMap<string, BenchResults>): string {
  const figures: BenchResults['figures'] = Object.assign(
    {},
    ...[...results.values()].map(({ figures }) => figures),
  )
  const rows = Object.entries<Aim>(AIMS).map(([key, aim]) => {
    const measured = figures[key as AimKey]
    const cells =
      measured === undefined
        ? ['not measured', '', '', aim.bench === undefined ? 'no bench' : code(aim.bench)]
        : [
            `${measured.value.toFixed(aim.decimals)} ${aim.unit}`.trim(),
            verdict(aim, measured.value),
            dayOf(measured.run),
            code(measured.run.args),
          ]
    return `| ${[aim.figure, aim.aim, ...cells].join(' | ')} |`
  })
  return `## Aims

| figure | aim | measured | | on | \`npm run bench --\` |
|---|---|---|---|---|---|
${rows.join('\n')}
`
}

function verdict({ atMost = Infinity, atLeast = -Infinity, ...aim }: Aim, value: number): string {
  if (atMost === Infinity && atLeast === -Infinity) return ''
  // As printed: 0.996 is 1.00.
  const printed = Number(value.toFixed(aim.decimals))
  return printed <= atMost && printed >= atLeast ? 'reached' : 'missed'
}

function describe(run: Run): string {
  return `${code(`npm run bench -- ${run.args}`)}, ${dayOf(run)}, ${run.cores} cores, Node.js ${run.node}.`
}

function dayOf({ at }: Run): string {
  return at.slice(0, 10)
}

function code(text: string): string {
  return `\`${text}\``
}
