/**
 * Metrics of several processes as those of one service.
 *
 * @module
 */

/** How the values of a family come together; default: their sum. */
const RULES: Readonly<Record<string, (one: number, other: number) => number>> = {
  millrace_ready: Math.min,
  millrace_cluster_registry_ready: Math.min,
  millrace_loop_delay_p99_seconds: Math.max,
  millrace_loop_delay_max_seconds: Math.max,
  process_start_time_seconds: Math.min,
}

const sum = (one: number, other: number) => one + other

interface Family {
  /** Lines with help and type. */
  readonly head: string[]
  /** Values by name and labels. */
  readonly samples: Map<string, number>
}

function newFamily(): Family {
  return { head: [], samples: new Map() }
}

/** @param texts  in the text format of Prometheus, with HELP before TYPE and TYPE before the samples of a family */
export function mergeMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>()
  for (const text of texts) {
    let name = ''
    for (const line of text.split('\n')) {
      if (line === '') continue
      const [, keyword, described] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      name = described ?? name
      const family = families.get(name) ?? newFamily()
      families.set(name, family)
      if (keyword !== undefined) {
        if (!family.head.includes(line)) family.head.push(line)
        continue
      }
      const end = line.lastIndexOf(' ')
      const [sample, value] = [line.slice(0, end), Number(line.slice(end + 1))]
      const known = family.samples.get(sample)
      family.samples.set(sample, known === undefined ? value : (RULES[name] ?? sum)(known, value))
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [
    ...head,
    ...[...samples].map(([sample, value]) => `${sample} ${value}`),
  ])
  return lines.map((line) => `${line}\n`).join('')
}
