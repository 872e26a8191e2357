import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { REDIRECTED, redirectElsewhere } from '../../client/redirecting-origin.ts'
import { startService } from '../../support/service.ts'
import { openPage } from '../support/browser.ts'
import { requireTool } from '../support/tools.ts'

/** Opens a page of the origin in Chromium, with the client in `Client`. */
async function openClient(t: Test, url: string) {
  const source = readFileSync(new URL('../../../src/client/index.ts', import.meta.url), 'utf8')
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
  const script = ts.transpileModule(source, {
    compilerOptions: { ...options, verbatimModuleSyntax: true },
  }).outputText
  t.notMatch(script, /^import /m, 'it needs no other file')
  const { page } = await openPage(t, url)
  await page.evaluate(
    `(async () => {
      const blob = new Blob([${JSON.stringify(script)}], { type: 'text/javascript' })
      Object.assign(window, await import(URL.createObjectURL(blob)))
    })()`,
  )
  return page
}

t.test('the client of the API works in Chromium, from a page of the service', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { url, hmacSecret } = await startService(t)
  const page = await openClient(t, `${url}/health/live`)
  const result = await page.evaluate(
    `(async () => {
      const client = new Client({ url: location.origin, secret: ${JSON.stringify(hmacSecret)} })
      const { status } = await client.call('start-stream', { stream_id: 'studio' })
      const error = await client.call('status', { stream_id: 'unknown' }).catch((error) => error)
      return { status, error: { status: error.status, code: error.code } }
    })()`,
  )
  t.same(result, { status: 'READY', error: { status: 404, code: 'STREAM_NOT_FOUND' } })
})

t.test(
  'the client of the API takes a redirect for an ApiError in Chromium, and its target gets nothing',
  async (t) => {
    if (!requireTool(t, 'chromium')) return
    const { url, received } = await redirectElsewhere(t, 307)
    const page = await openClient(t, url)
    const error = await page.evaluate(
      `new Client({ url: location.origin, secret: 's' })
      .call('stop-stream', { stream_id: 'studio' })
      .catch(({ status, code, message }) => ({ status, code, message }))`,
    )
    t.match(error, { status: 0, code: 'UNKNOWN', message: REDIRECTED })
    t.same(received, [])
  },
)
