/**
 * Main and backup encoder that die, stop and come back, before hls.js, Shaka and Video.js as published. Prints how long the
 * video stood still in each player, and the largest hole between the dates of two segments.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { checkStream } from '../../src/check/index.ts'
import type { EndpointName } from '../../src/client/index.ts'
import { callApi } from '../support/service.ts'
import { rounds } from '../support/soak.ts'
import { until } from '../support/until.ts'
import { openBrowser } from '../peers/support/browser.ts'
import { FRAMES_PER_SEC, startEncoder } from '../peers/support/live-encoder.ts'
import { createSecrets, startNodes, type NodeProcess } from '../peers/support/node-processes.ts'
import { requireTool } from '../peers/support/tools.ts'
import { hasGivenUp } from '../peers/support/video-js-player.ts'
import { openScreens, readShown } from './screens.ts'

const SIZE = '320x180'
const FAILBACK_SEC = 5
const KILLS = rounds(1, 20)
const FLAPS = rounds(1, 10)

/** BANDWIDTH is that of the slate, and before the slate there is nothing for two seconds. */
const EXCEPT = new Set(['BANDWIDTH_TIGHT', 'PLAYLIST_STALE'])

/** Time in seconds between the end of each segment by its date and duration, and the date of the next one. */
function holesOf(playlist: string): number[] {
  const dated = playlist.matchAll(/#EXT-X-PROGRAM-DATE-TIME:(.*)[^]*?#EXTINF:([\d.]+)/g)
  const segments = Array.from(dated, ([, date, sec]) => ({
    at: Date.parse(date!) / 1000,
    sec: Number(sec),
  }))
  return segments.slice(1).map(({ at }, index) => at - segments[index]!.at - segments[index]!.sec)
}

t.test('players go on by themselves through failovers', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const slateDir = t.testdir()
  const slate = join(slateDir, 'slate.ts')
  await startEncoder(t, slate, SIZE, { color: 'green', seconds: 2, isFine: true }).exit
  const env = {
    ...createSecrets(),
    ...{ SLATE_DIR: slateDir, FAILBACK_SEC: String(FAILBACK_SEC) },
    HLS_PLAYLIST_SEGMENTS: '60',
  }
  const [node] = (await startNodes(t, 'serve', env, 1)) as [NodeProcess]
  const call = async (name: EndpointName, body: object = {}) =>
    (await callApi(node.url, name, { stream_id: 'studio', ...body }, env.HMAC_SECRET)).body.data
  const started = await call('start-stream', { backup: true, slate: 'slate.ts' })
  const { master_url: masterUrl, srt_url: mainUrl, backup_srt_url: backupUrl } = started
  const connect = (url: string, color: string) =>
    startEncoder(t, url, SIZE, { color, isFine: true, retries: true })
  const connectMain = () => connect(mainUrl, 'red')
  const connectBackup = () => connect(backupUrl, 'blue')
  const airs = (source: string) =>
    until(`${source} is on air`, async () => (await call('status'))['on_air'] === source)
  const sourceChanges = async () => (await call('status'))['totals']['source_changes'] as number

  let main = connectMain()
  let backup = connectBackup()
  const playlistUrl = masterUrl.replace('master', 'cmaf-video-1')
  await until('the stream is live', async () => (await fetch(playlistUrl)).ok)
  const checking = new AbortController()
  t.teardown(() => checking.abort())
  const check = checkStream({ url: masterUrl, seconds: 3600, signal: checking.signal })
  const screens = await openScreens(await openBrowser(t), masterUrl)
  for (const { page } of screens) await readShown(page, 'anew')

  /** What the players saw since the last call. */
  const report = async (what: string): Promise<void> => {
    const stills: string[] = []
    for (const { name, page, errorsOf } of screens) {
      // What is played is a player's delay behind what is on air.
      let { frames } = await readShown(page)
      const playsOn = async () => {
        if (hasGivenUp(await errorsOf(page))) {
          t.comment(`${name} is loaded anew`)
          await page.reload()
          frames = 0
        }
        return (await readShown(page)).frames > frames + 5 * FRAMES_PER_SEC
      }
      await until(`${name} plays on`, playsOn)
      stills.push(`${name} ${Math.round((await readShown(page, 'anew')).stillMs)} ms`)
    }
    const holeSec = Math.max(...holesOf(await (await fetch(playlistUrl)).text()))
    t.comment(`${what}: still ${stills.join(', ')}; hole in the dates ${holeSec.toFixed(2)} s`)
  }

  for (let kill = 1; kill <= KILLS; kill++) {
    main.kill('SIGKILL')
    await airs('backup')
    main = connectMain()
    await airs('main')
    await report(`main killed, ${kill}`)
  }

  main.kill('SIGSTOP')
  await airs('backup')
  await sleep(3000)
  main.kill('SIGCONT')
  await airs('main')
  await report('main stopped')

  const before = await sourceChanges()
  for (let flap = 0; flap < FLAPS; flap++) {
    main.kill('SIGKILL')
    await sleep(3000)
    main = connectMain()
    await sleep(3000)
  }
  await airs('main')
  await report(`main away for 3 s and back for 3 s, ${FLAPS} times`)
  // The main encoder never stays for as long as FAILBACK_SEC, until the end.
  t.equal((await sourceChanges()) - before, 2, 'to the backup, and back')

  main.kill('SIGKILL')
  backup.kill('SIGKILL')
  await airs('slate')
  await sleep(3000)
  backup = connectBackup()
  main = connectMain()
  await airs('main')
  await report('both killed, slate, both back')

  for (const { name, page, errorsOf } of screens) {
    t.strictSame(await errorsOf(page), [], `${name} has no error`)
  }
  checking.abort()
  const { findings } = await check
  const broken = findings.filter(({ rule }) => !EXCEPT.has(rule.id))
  t.strictSame(
    broken.map(({ rule, count, evidence }) => [rule.id, count, evidence]),
    [],
  )
})
