/** `millrace check`: arguments, reports and exit status. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCheck } from '../../src/check/command.ts'
import { startOrigin } from './follow/origin.ts'

const HEAD = '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n'
const ENDED = `${HEAD}#EXTINF:2.000,\n0.vtt\n#EXT-X-ENDLIST\n`

async function run(...args: string[]) {
  const texts = { out: '', err: '' }
  const writer = (name: 'out' | 'err') =>
    ({ isTTY: false, write: (text: string) => (texts[name] += text) }) as never
  const output = { stdout: writer('out'), stderr: writer('err') }
  return { exit: await runCheck(args, output, new AbortController().signal), ...texts }
}

t.test(
  'exits 1 for a broken MUST, with reports and a record that a replay finds alike',
  async (t) => {
    const origin = await startOrigin(t, ({ url }, response) => {
      response.writeHead(url === '/live.m3u8' ? 200 : 404).end(ENDED)
    })
    const folder = t.testdir()
    const [json, junit, record] = ['a.json', 'a.xml', 'record'].map((name) => join(folder, name))
    const url = `${origin.url}/live.m3u8`
    const live = await run(url, '--json', json!, '--junit', junit!, '--record', record!)
    t.equal(live.exit, 1)
    t.match(live.out, /MEDIA_NOT_FETCHED/)
    const report = JSON.parse(readFileSync(json!, 'utf8')) as { findings: { id: string }[] }
    t.ok(report.findings.some(({ id }) => id === 'MEDIA_NOT_FETCHED'))
    t.match(readFileSync(junit!, 'utf8'), /MEDIA_NOT_FETCHED/)
    t.ok(existsSync(join(record!, 'exchanges.jsonl')))
    const replayed = await run('--replay', record!)
    t.same(replayed, live)
  },
)

t.test('exits 2 where nothing can be fetched', async (t) => {
  const origin = await startOrigin(t, (_, response) => response.writeHead(404).end())
  t.equal((await run(`${origin.url}/live.m3u8`)).exit, 2)
})

t.test('refuses arguments that are no check', async (t) => {
  for (const args of [
    [],
    ['ftp://example.com/a.m3u8'],
    ['http://a/', 'http://b/'],
    ['http://a/', '--replay', 'dir'],
    ['http://a/', '--seconds', 'x'],
    ['http://a/', '--seconds', '0'],
    ['http://a/', '--player', 'vlc'],
  ]) {
    await t.rejects(run(...args), { code: 'USAGE' }, args.join(' '))
  }
  await t.rejects(run('http://a/', '--speed', '2'), { code: 'ERR_PARSE_ARGS_UNKNOWN_OPTION' })
})
