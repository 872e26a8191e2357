/** docs/media-cases.md: the corpus, as generated. `npm run docs` writes it. */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { CORPUS } from './corpus.ts'
import { describeCorpus } from './table.ts'

const PAGE = new URL('../../../docs/media-cases.md', import.meta.url)
const CASES = /(?<=<!-- cases: [^>]* -->\n)[^]*(?=<!-- cases end -->)/

t.test('docs/media-cases.md lists every case with its expected output', async (t) => {
  const page = readFileSync(PAGE, 'utf8')
  const cases = `${describeCorpus(CORPUS)}\n`
  t.match(page, CASES)
  const written = page.replace(CASES, () => cases)
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(PAGE, written)
  else t.equal(CASES.exec(page)?.[0], cases, '`npm run docs` writes the tables')
})
