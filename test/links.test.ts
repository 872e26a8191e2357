/**
 * Links of all pages to files and headings of the repository.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDERS = ['docs', 'examples', 'bench', 'deploy', 'test', '.github']

/** A fenced block, or code within a line: what looks like a link there is none. */
const CODE = /^```[^]*?^```|`[^`\n]*`/gm

t.test('each relative link leads to a file of the repository, and to a heading of it', (t) => {
  const pages = readdirSync(ROOT).filter(isPage)
  for (const folder of FOLDERS) {
    const paths = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    pages.push(...paths.filter(isPage).map((path) => join(folder, path)))
  }
  const links = pages.flatMap((page) => linksOf(page).map((link) => ({ page, link })))
  t.ok(links.length > 50, 'links are found')
  t.strictSame(
    links
      .filter(({ page, link }) => !holds(page, link))
      .map(({ page, link }) => `${page}: ${link}`),
    [],
  )
  t.end()
})

t.test('a link to a missing file or heading is found', (t) => {
  t.ok(holds('README.md', 'docs/api.md'))
  t.ok(holds('docs/api.md', '../README.md#run-it'))
  t.notOk(holds('README.md', 'docs/apis.md'))
  t.notOk(holds('docs/api.md', '../README.md#walk-it'))
  t.strictSame(
    [slug('## HTTPS and HTTP/2'), slug("### The encoder's `connection`")],
    ['https-and-http2', 'the-encoders-connection'],
  )
  t.end()
})

function isPage(path: string): boolean {
  return path.endsWith('.md') && !path.includes('node_modules')
}

/** Targets of the links of a page within the repository. */
function linksOf(page: string): string[] {
  const text = read(page).replaceAll(CODE, '')
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link]) => link!).filter(
    (link) => !/^[a-z]+:/.test(link),
  )
}

function holds(page: string, link: string): boolean {
  const [path = '', heading] = link.split('#')
  const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
  if (!existsSync(join(ROOT, target))) return false
  return heading === undefined || headings(target).includes(heading)
}

/** Anchors of the headings of a page. */
function headings(page: string): string[] {
  return Array.from(
    read(page)
      .replaceAll(/^```[^]*?^```/gm, '')
      .matchAll(/^#+ .*$/gm),
    ([line]) => slug(line),
  )
}

/** Anchor of a heading, as forges make it. */
function slug(heading: string): string {
  return heading
    .replace(/^#+ /, '')
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
}

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}
