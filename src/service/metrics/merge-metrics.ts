/**
 * Metrics of several processes as those of one service: each sample with the process that it is of.
 *
 * @module
 */

interface ProcessMetrics {
  /** Value of the label `process`. */
  readonly process: string
  /** In the text format of Prometheus, with HELP and TYPE of a family before its samples. */
  readonly text: string
}

export function mergeMetrics(processes: readonly ProcessMetrics[]): string {
  /** Lines by family: HELP and TYPE once, then the samples of all processes. */
  const families = new Map<string, Set<string>>()
  for (const { process, text } of processes) {
    let lines = new Set<string>()
    for (const line of text.split('\n')) {
      const [, family] = /^# \w+ (\S+)/.exec(line) ?? []
      if (family !== undefined) {
        lines = families.get(family) ?? new Set()
        families.set(family, lines)
      }
      if (line !== '') lines.add(family === undefined ? withLabel(line, process) : line)
    }
  }
  return [...families.values()].map((lines) => [...lines, ''].join('\n')).join('')
}

/** @param sample  `name{labels} value` or `name value` */
function withLabel(sample: string, process: string): string {
  const [name = ''] = /^\w+/.exec(sample) ?? []
  const rest = sample.slice(name.length)
  const label = `process="${process}"`
  return rest.startsWith('{') ? `${name}{${label},${rest.slice(1)}` : `${name}{${label}}${rest}`
}
