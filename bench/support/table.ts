/**
 * Text tables.
 *
 * @module
 */

/** Heading of a column, and decimals of its numbers. */
export interface Column {
  readonly title: string
  readonly decimals?: number
}

/** Formats a table: first column left-aligned, others right-aligned, NaN as a dash. */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const lines = [
    columns.map(({ title }) => title),
    ...rows.map((row) => row.map((cell, index) => formatCell(cell, columns[index]?.decimals))),
  ]
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]!.length)))
  const pad = (cell: string, index: number) =>
    index === 0 ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!)
  return lines.map((line) => line.map(pad).join('  ').trimEnd()).join('\n')
}

function formatCell(cell: string | number, decimals = 0): string {
  if (typeof cell === 'string') return cell
  if (Number.isNaN(cell)) return '-'
  return cell.toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  })
}
