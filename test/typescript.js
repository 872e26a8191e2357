/**
 * Loader of modules for tests. Strips types, which leaves every line where it is, and keeps the result. Replaces the hooks of
 * tap for coverage, mocks of modules and source maps, which our tests do not use: `millrace keygen` took 1.9 s of CPU with
 * them and takes 0.6 s without, a test that imports the service 3.1 s and 2.1 s.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread, threadId } from 'node:worker_threads'
import processOnSpawn from 'process-on-spawn'

const CACHE = new URL('../node_modules/.cache/stripped-types/', import.meta.url)

// Node runs the hooks in a thread of their own, the last registered first.
if (isMainThread) {
  // Before the hooks, which would ask their thread for each of its 190 modules: 50 ms of 300 ms for the smallest test. Not in
  // processes that tests start: there it would take as long, and end them after 30 s.
  if (process.argv[1]?.endsWith('.test.ts')) await import('tap')
  register(import.meta.url)
  process.setSourceMapsEnabled(false)
  // These pass the hooks of tap to child processes. One without this environment would measure coverage, which fails a run.
  processOnSpawn.removeAllListeners()
  delete process.env['NODE_OPTIONS']
  process.execArgv = process.execArgv.filter((flag) => !flag.includes('/@tapjs/'))
}

/** @see https://nodejs.org/docs/latest-v20.x/api/module.html#resolvespecifier-context-nextresolve */
export function resolve(specifier, context, nextResolve) {
  if (specifier.startsWith('node:')) return { url: specifier, shortCircuit: true }
  if (!/^\.\.?\//.test(specifier)) return nextResolve(specifier, context)
  return { url: new URL(specifier, context.parentURL).href, shortCircuit: true }
}

/** @see https://nodejs.org/docs/latest-v20.x/api/module.html#loadurl-context-nextload */
export async function load(url, context, nextLoad) {
  if (url.startsWith('node:')) return { format: 'builtin', shortCircuit: true }
  if (!/\.(ts|mjs)$/.test(url)) return nextLoad(url, context)
  const text = readFileSync(fileURLToPath(url), 'utf8')
  if (url.endsWith('.mjs')) return { format: 'module', shortCircuit: true, source: text }
  const kept = new URL(`${createHash('sha256').update(text).digest('hex')}.js`, CACHE)
  return { format: 'module', shortCircuit: true, source: read(kept) ?? (await strip(text, kept)) }
}

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

async function strip(text, kept) {
  const { default: stripTypes } = await import('ts-blank-space')
  const stripped = stripTypes(text)
  mkdirSync(CACHE, { recursive: true })
  // Other processes may read the file at any time.
  const unfinished = new URL(`${process.pid}-${threadId}.tmp`, CACHE)
  writeFileSync(unfinished, stripped)
  renameSync(unfinished, kept)
  return stripped
}
