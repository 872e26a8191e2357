/** `millrace check`: arguments, reports and exit status. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCheck, type CheckArguments } from '../../src/check/command.ts'
import { freePort } from '../support/free-port.ts'
import { startOrigin } from '../check/follow/origin.ts'

const HEAD = '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n'
const ENDED = `${HEAD}#EXTINF:2.000,\n0.vtt\n#EXT-X-ENDLIST\n`

async function run(given: Omit<CheckArguments, 'player'>) {
  const texts = { out: '', err: '' }
  const writer = (name: 'out' | 'err') =>
    ({ isTTY: false, write: (text: string) => (texts[name] += text) }) as never
  const output = { stdout: writer('out'), stderr: writer('err') }
  const signal = new AbortController().signal
  return { exit: await runCheck({ player: 'all', ...given }, output, signal), ...texts }
}

t.test(
  'exits 1 for a broken MUST, with reports and a record that a replay finds alike',
  async (t) => {
    const origin = await startOrigin(t, ({ url }, response) => {
      response.writeHead(url === '/live.m3u8' ? 200 : 404).end(ENDED)
    })
    const folder = t.testdir()
    const [json, junit, record] = [
      join(folder, 'a.json'),
      join(folder, 'a.xml'),
      join(folder, 'record'),
    ]
    const url = `${origin.url}/live.m3u8`
    const live = await run({ url, json, junit, record })
    t.equal(live.exit, 1)
    t.match(live.out, /MEDIA_NOT_FETCHED/)
    const report = JSON.parse(readFileSync(json, 'utf8')) as { findings: { id: string }[] }
    t.ok(report.findings.some(({ id }) => id === 'MEDIA_NOT_FETCHED'))
    t.match(readFileSync(junit, 'utf8'), /MEDIA_NOT_FETCHED/)
    t.ok(existsSync(join(record, 'exchanges.jsonl')))
    const replayed = await run({ replay: record })
    t.same(replayed, live)
  },
)

t.test('exits 2 where nothing can be fetched', async (t) => {
  const origin = await startOrigin(t, (_, response) => response.writeHead(404).end())
  t.equal((await run({ url: `${origin.url}/live.m3u8` })).exit, 2)
})

t.test('says that a web page is no playlist, also from a record', async (t) => {
  const pages = ['<!DOCTYPE html><title>Home</title>', '\n<html lang="en">', '<!-- home --><p>']
  for (const page of pages) {
    const origin = await startOrigin(t, (_, response) => response.end(page))
    const record = join(t.testdir(), 'record')
    const live = await run({ url: `${origin.url}/`, record })
    t.equal(live.exit, 2)
    t.match(
      live.out,
      /^This is a web page, not a playlist: http:\S+\/\. Give the URL of the playlist, /,
    )
    t.equal(origin.requests.length, 1)
    t.same(await run({ replay: record }), live)
  }
})

t.test('checks the stream of a player page, with its token and prefix', async (t) => {
  const served = new Map([
    ['/watch/studio', '<!doctype html>'],
    ['/video/studio/master.m3u8', ENDED],
    ['/live/t/token/watch/studio', '<!doctype html>'],
    // A stream without CMAF.
    ['/live/t/token/video/studio/playlist.m3u8', ENDED],
    ['/watch/away', '<!doctype html>'],
  ])
  const origin = await startOrigin(t, ({ url = '' }, response) => {
    const text = served.get(url)
    response.writeHead(text === undefined ? 404 : 200).end(text)
  })
  const playlists = { '/watch/studio': 'master', '/live/t/token/watch/studio': 'playlist' }
  for (const [path, name] of Object.entries(playlists)) {
    const { exit, out } = await run({ url: origin.url + path })
    t.equal(exit, 1)
    t.match(out, 'This is a web page, not a playlist: its stream was checked,')
    t.match(out, `${path.replace('watch', 'video')}/${name}.m3u8\n`)
    t.match(out, 'MEDIA_NOT_FETCHED')
    t.notMatch(out, 'NOT_EXTM3U')
  }
  const away = await run({ url: `${origin.url}/watch/away` })
  t.equal(away.exit, 2)
  t.match(
    away.out,
    /^This is a web page, not a playlist: \S+away\. Its stream has no playlist:\s+start/,
  )
})

t.test('says that it cannot connect, and nothing about players', async (t) => {
  const port = await freePort()
  const { exit, out } = await run({ url: `http://user:s3cret@127.0.0.1:${port}/live.m3u8` })
  t.equal(exit, 2)
  t.equal(out, `Cannot connect to http://127.0.0.1:${port}: the connection was refused.\n`)
})

t.test('says that no browser loads from a blocked port', async (t) => {
  const { exit, out } = await run({ url: 'http://127.0.0.1:1/live.m3u8' })
  t.equal(exit, 2)
  t.match(
    out,
    /^Cannot connect to http:\/\/127\.0\.0\.1:1: browsers, and this check, refuse this port\.\n$/,
  )
})

t.test('refuses a URL that is neither http nor https', async (t) => {
  await t.rejects(run({ url: 'ftp://example.com/a.m3u8' }), { code: 'USAGE' })
})
