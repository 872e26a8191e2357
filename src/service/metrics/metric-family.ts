/**
 * Row of a table of metrics. A name ends with the unit, a counter with `_total`.
 *
 * @module
 */

/** Metric that is read from `Figures` at a scrape. */
export interface MetricFamily<Figures> {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  /** The only label, apart from `stream`; its values are bounded. */
  readonly label?: string
  /** @returns the value, or a value for each value of the label; undefined for none */
  readonly read: (figures: Figures) => number | Readonly<Record<string, number>> | undefined
}
