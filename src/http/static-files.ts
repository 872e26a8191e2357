/**
 * Static files of a page, in memory: its HTML, its style sheet, the modules that the build compiled for browsers, and
 * libraries.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { clientHas } from './response.ts'

interface StaticFile {
  readonly name: string
  readonly type: string
  readonly content: Buffer
  readonly etag: string
}

/** A page and all that it loads. */
export interface StaticPage {
  readonly html: StaticFile
  readonly assets: readonly StaticFile[]
}

/** Pages of the build; the path is the same from `src` and from `dist`. */
const PAGES = new URL('../../dist/web/', import.meta.url)

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

/**
 * @param page  folder below `src/web`
 * @param libraries  paths of modules by names of files
 */
export function readPage(page: string, libraries: Readonly<Record<string, string>>): StaticPage {
  const folder = new URL(`${page}/`, PAGES)
  const { resolve } = createRequire(import.meta.url)
  const own = readdirSync(folder).filter((name) => ['.css', '.js'].includes(extname(name)))
  return {
    html: readFile('index.html', new URL('index.html', folder)),
    assets: [
      ...own.map((name) => readFile(name, new URL(name, folder))),
      ...Object.entries(libraries).map(([name, path]) => readFile(name, resolve(path))),
    ],
  }
}

function readFile(name: string, path: string | URL): StaticFile {
  const content = readFileSync(path)
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 16)}"`
  return { name, type: TYPES[extname(name)]!, content, etag }
}

/** Adds a GET route for a file, with `ETag` and 304. */
export function serveFile(
  app: FastifyInstance,
  url: string,
  { type, content, etag }: StaticFile,
  cacheControl: string,
): void {
  app.get(url, { prefixTrailingSlash: 'slash' }, ({ headers }, reply) => {
    reply.headers({ 'cache-control': cacheControl, etag })
    if (clientHas(etag, headers['if-none-match'])) return reply.code(304).send()
    return reply.type(type).send(content)
  })
}
