/**
 * Static files of the dashboard: its page, the modules that the build compiled for browsers, and libraries.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { isKnown } from '../file-reply.ts'

interface Asset {
  readonly name: string
  readonly type: string
  readonly content: Buffer
  readonly etag: string
}

/** Folder of the build; the path is the same from `src` and from `dist`. */
const PAGE = new URL('../../../dist/http/admin/page/', import.meta.url)

const LIBRARIES = {
  'hls.min.js': 'hls.js/dist/hls.min.js',
  'uplot.min.js': 'uplot/dist/uPlot.iife.min.js',
  'uplot.min.css': 'uplot/dist/uPlot.min.css',
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

/** Fastify plugin: the page at `/`, everything else below `/assets/`. None of it is a secret. */
export const assets: FastifyPluginAsync = async (app) => {
  // Relative, so that the page also opens below a prefix of a reverse proxy.
  app.get('', (_request, reply) => reply.redirect('admin/', 308))
  for (const { name, type, content, etag } of readAssets()) {
    const url = name === 'index.html' ? '/' : `/assets/${name}`
    app.get(url, { prefixTrailingSlash: 'slash' }, ({ headers }, reply) => {
      reply.headers({ 'cache-control': 'no-cache', etag })
      if (isKnown(etag, headers['if-none-match'])) return reply.code(304).send()
      return reply.type(type).send(content)
    })
  }
}

/** Reads all files, once at the start. */
function readAssets(): Asset[] {
  const { resolve } = createRequire(import.meta.url)
  const own = readdirSync(PAGE)
    .filter((name) => extname(name) in TYPES)
    .map((name) => [name, new URL(name, PAGE)] as const)
  const libraries = Object.entries(LIBRARIES).map(([name, path]) => [name, resolve(path)] as const)
  return [...own, ...libraries].map(([name, path]) => {
    const content = readFileSync(path)
    const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 16)}"`
    return { name, type: TYPES[extname(name)]!, content, etag }
  })
}
