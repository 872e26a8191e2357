/**
 * Every warning that a source can have stands in docs/troubleshooting.md, and nothing there is made up.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'

const ROOT = new URL('../../', import.meta.url)

function codesInSource(): string[] {
  const codes = ['src/hls/', 'src/stream/'].flatMap((room) =>
    readdirSync(new URL(room, ROOT), { recursive: true, encoding: 'utf8' }).flatMap((file) => {
      if (!file.endsWith('.ts')) return []
      const source = readFileSync(new URL(room + file, ROOT), 'utf8')
      return [...source.matchAll(/\bcode: '([A-Z_]+)'/g)].map(([, code]) => code!)
    }),
  )
  return [...new Set(codes)].toSorted()
}

t.test('docs/troubleshooting.md has a row for each warning, and says what to do', async (t) => {
  const page = readFileSync(new URL('docs/troubleshooting.md', ROOT), 'utf8')
  const sections = page.split(/^## /m).filter((section) => /^.* has a warning\n/.test(section))
  const rows = sections.flatMap((section) => [...section.matchAll(/^\| `([A-Z_]+)` .*$/gm)])
  const codes = codesInSource()
  t.ok(codes.length > 30, 'there are some')
  t.strictSame(rows.map(([, code]) => code!).toSorted(), codes)
  for (const [row] of rows) {
    const cells = row.split(/(?<!\\)\|/).map((cell) => cell.trim())
    t.ok(cells.length === 5 && cells.slice(1, 4).every((cell) => cell !== ''), row.slice(0, 40))
  }
})
