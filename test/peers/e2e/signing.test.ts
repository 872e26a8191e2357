/**
 * The programs with which docs/api.md signs a call, as written but for the port.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'

const PAGE = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')

/** Language of a block -> programs that it needs, and the command that runs a file of it. */
const LANGUAGES = {
  sh: { needs: ['curl', 'openssl'], command: ['sh'] },
  python: { needs: ['python3'], command: ['python3'] },
  php: { needs: ['php'], command: ['php'] },
  go: { needs: ['go'], command: ['go', 'run'] },
}

for (const [language, { needs, command }] of Object.entries(LANGUAGES)) {
  t.test(`the example in ${language} of docs/api.md starts a stream`, async (t) => {
    if (!requireTool(t, ...needs)) return
    const blocks = PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, 'g'))
    const example = Array.from(blocks, ([, text]) => text!).find((text) => /HMAC_SECRET/.test(text))
    t.ok(example, 'there is one')
    const { url, server, hmacSecret } = await startService(t)
    const file = join(t.testdir(), `example.${language}`)
    writeFileSync(file, example!.replace('http://127.0.0.1:8080', url))
    const [program, ...args] = command
    const { stdout } = await promisify(execFile)(program!, [...args, file], {
      env: { ...process.env, HMAC_SECRET: hmacSecret },
    })
    t.match(stdout, /srt:\/\/127\.0\.0\.1:\d+\?streamid=/)
    t.equal(server.status('studio').status, 'READY')
  })
}
