import t from 'tap'
import { AIMS, type AimKey } from '../../bench/aims.ts'
import { renderResults } from '../../bench/results.ts'
import { leaveFigures, readResults } from '../../bench/support/figures.ts'

function rowOf(page: string, key: AimKey): string[] {
  const row = page.split('\n').find((line) => line.startsWith(`| ${AIMS[key].figure} |`))
  return (row ?? '').split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim())
}

t.test('a page without runs says of every figure that it was not measured', async (t) => {
  const page = renderResults(new Map())
  for (const key of Object.keys(AIMS) as AimKey[]) {
    t.equal(rowOf(page, key)[2], 'not measured', key)
  }
})

t.test('a figure that was left is on the page, beside its aim', async (t) => {
  const folder = t.testdir()
  const args = 'http --rounds 3'
  const figures = { 'segment-nginx': 1.296, 'part-nginx': 0.9, 'playlist-node': NaN }
  leaveFigures('http', 'server  replies/s', { figures, args, folder })
  const page = renderResults(new Map([['http', readResults('http', folder)!]]))
  const today = new Date().toISOString().slice(0, 10)
  t.match(rowOf(page, 'segment-nginx').slice(1), ['≥ 1.3 ×', '1.30 ×', 'reached', today])
  t.match(rowOf(page, 'part-nginx').slice(1), ['≥ 1 ×', '0.90 ×', 'missed', today])
  t.equal(rowOf(page, 'playlist-node')[2], 'not measured', 'NaN is no figure')
  t.match(page, `\`npm run bench -- ${args}\``)
  t.match(page, 'server  replies/s')
  t.match(page, `Node.js ${process.version}`)
})

t.test('a figure stays until the bench measures it again', async (t) => {
  const folder = t.testdir()
  const leave = (args: string, figures: { [Key in AimKey]?: number }) =>
    leaveFigures('ingest', `tables of ${args}`, { figures, args, folder })
  leave('ingest --publishers 100', { 'ingest-cpu': 15, 'ingest-lost': 0 })
  leave('ingest --publishers 1', { 'ingest-40-ffmpeg': 1.5 })
  leave('ingest --publishers 100', { 'ingest-cpu': 12 })
  const { figures, reports } = readResults('ingest', folder)!
  t.match(figures, {
    'ingest-cpu': { value: 12 },
    'ingest-lost': { value: 0 },
    'ingest-40-ffmpeg': { value: 1.5, run: { args: 'ingest --publishers 1' } },
  })
  t.same(
    reports.map(({ text }) => text),
    ['tables of ingest --publishers 1', 'tables of ingest --publishers 100'],
    'the latest tables for each command',
  )
})

t.test('a bench without results has left nothing', async (t) => {
  t.equal(readResults('http', t.testdir()), undefined)
})
