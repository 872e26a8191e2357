import { readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'
import { startService } from '../../support/service.ts'
import { openPage } from '../support/browser.ts'
import { requireTool } from '../support/tools.ts'

t.test('the client of the API works in Chromium, from a page of the service', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { url, hmacSecret } = await startService(t)
  const source = readFileSync(new URL('../../../src/client/index.ts', import.meta.url), 'utf8')
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
  const script = ts.transpileModule(source, {
    compilerOptions: { ...options, verbatimModuleSyntax: true },
  }).outputText
  t.notMatch(script, /^import /m, 'it needs no other file')
  const { page } = await openPage(t, `${url}/health/live`)
  const result = await page.evaluate(
    `(async () => {
      const { Client } = await import(URL.createObjectURL(
        new Blob([${JSON.stringify(script)}], { type: 'text/javascript' })))
      const client = new Client({ url: location.origin, secret: ${JSON.stringify(hmacSecret)} })
      const { status } = await client.call('start-stream', { stream_id: 'studio' })
      const error = await client.call('status', { stream_id: 'unknown' }).catch((error) => error)
      return { status, error: { status: error.status, code: error.code } }
    })()`,
  )
  t.same(result, { status: 'READY', error: { status: 404, code: 'STREAM_NOT_FOUND' } })
})
