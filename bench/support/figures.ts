/**
 * Figures and tables that benches leave for `bench/RESULTS.md`: a JSON file for each bench.
 *
 * @module
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { AimKey } from '../aims.ts'

/** Ignored by git; relative to the project. */
export const RESULTS = 'bench/results'

export type Figures = Partial<Readonly<Record<AimKey, number>>>

/** When, where and how something was measured. */
export interface Run {
  /** ISO 8601, UTC. */
  readonly at: string
  readonly cores: number
  readonly node: string
  /** Arguments behind `npm run bench --`. */
  readonly args: string
}

export interface BenchResults {
  /** A figure stays until the bench measures it again. */
  readonly figures: Partial<Readonly<Record<AimKey, Measured>>>
  /** Tables of the latest run with the same arguments. */
  readonly reports: readonly { readonly run: Run; readonly text: string }[]
}

export interface Measured {
  readonly value: number
  readonly run: Run
}

export interface Leaving {
  /** Those that are not finite were not measured. */
  readonly figures: Figures
  readonly args: string
  readonly folder?: string
}

export function leaveFigures(
  bench: string,
  text: string,
  { figures, args, folder = RESULTS }: Leaving,
): void {
  const run: Run = {
    at: new Date().toISOString(),
    cores: availableParallelism(),
    node: process.version,
    args,
  }
  const measured = Object.entries(figures).flatMap(([key, value]) =>
    Number.isFinite(value) ? [[key, { value, run }]] : [],
  )
  const before = readResults(bench, folder)
  const results: BenchResults = {
    figures: {
      ...before?.figures,
      ...Object.fromEntries(measured),
    },
    reports: [...(before?.reports.filter((each) => each.run.args !== args) ?? []), { run, text }],
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/${bench}.json`, `${JSON.stringify(results, undefined, 2)}\n`)
}

/** @returns undefined if the bench has left nothing */
export function readResults(bench: string, folder = RESULTS): BenchResults | undefined {
  try {
    return JSON.parse(readFileSync(`${folder}/${bench}.json`, 'utf8')) as BenchResults
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
