/**
 * What players request by themselves, and that it is answered as they like it best: compressed playlists, delta updates,
 * requests that wait, byte ranges.
 */
import type { BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { startFaultProxy, type ProxyReply, type ProxyRequest } from '../../check/fault-proxy.ts'
import { MemoryService, startApp } from '../../http/memory-service.ts'
import { openBrowser, playback } from '../support/browser.ts'
import { openPlayer } from '../support/hls-player.ts'
import { startLiveClip } from '../support/live-clip.ts'
import { start } from '../../support/process.ts'
import { openShaka } from '../support/shaka-player.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { openVideoJs } from '../support/video-js-player.ts'

const PLAYED_SEC = 3

type Exchange = ProxyRequest & { readonly reply: ProxyReply }

interface Player {
  /** Plays for `PLAYED_SEC`. */
  readonly play: (t: Test, url: string, context: BrowserContext) => Promise<unknown>
  /** A reply to each of these must have been seen. */
  readonly sees: readonly (keyof typeof EXCHANGES)[]
}

const isPlaylist = ({ url }: Exchange) => /\.m3u8(\?|$)/.test(url)
const isMedia = ({ url }: Exchange) => url.endsWith('.m4s')

const EXCHANGES = {
  'a compressed playlist': (it: Exchange) =>
    isPlaylist(it) &&
    it.reply.status === 200 &&
    ['br', 'gzip'].includes(String(it.reply.headers['content-encoding'])),
  'a plain playlist': (it: Exchange) =>
    isPlaylist(it) && it.reply.status === 200 && it.reply.headers['content-encoding'] === undefined,
  'a whole playlist for a range': (it: Exchange) =>
    isPlaylist(it) && it.headers['range'] !== undefined && it.reply.status === 200,
  'a reload that waits': (it: Exchange) =>
    it.url.includes('_HLS_msn=') && it.reply.status === 200 && isBlocking(it.reply),
  'a delta update': (it: Exchange) => it.url.includes('_HLS_skip=') && it.reply.status === 200,
  media: (it: Exchange) => isMedia(it) && it.reply.status === 200,
  'a range of media': (it: Exchange) =>
    isMedia(it) && it.headers['range'] !== undefined && it.reply.status === 206,
}

/** A reply that waited for media is in shared caches for six target durations (RFC 8216bis appendix B.1). */
const isBlocking = ({ headers }: ProxyReply) =>
  headers['cache-control'] === 'public, max-age=0, s-maxage=6'

const LOW_LATENCY = ['a compressed playlist', 'a reload that waits', 'a delta update'] as const

const PLAYERS: Record<string, Player> = {
  'hls.js': { play: inPage(openPlayer), sees: [...LOW_LATENCY, 'media'] },
  Shaka: { play: inPage(openShaka), sees: [...LOW_LATENCY, 'media'] },
  'Video.js': { play: inPage(openVideoJs), sees: [...LOW_LATENCY, 'media'] },
  ffmpeg: {
    play: async (t, url) => {
      const input = ['-v', 'error', '-re', '-i', url, '-t', String(PLAYED_SEC)]
      const ffmpeg = start(t, 'ffmpeg', [...input, '-c', 'copy', '-f', 'null', '-'])
      t.equal(await ffmpeg.exit, 0)
      t.equal(ffmpeg.output(), '')
    },
    sees: ['a plain playlist', 'a whole playlist for a range', 'a range of media'],
  },
}

/** Plays in a browser. */
function inPage(open: (context: BrowserContext, url: string) => Promise<Page>): Player['play'] {
  return async (_, url, context) => {
    const page = await open(context, url)
    const playedFrom = await until('it plays', async () => (await playback(page)).currentTimeSec)
    await until('it has played', async () => {
      const { currentTimeSec } = await playback(page)
      return currentTimeSec >= playedFrom + PLAYED_SEC
    })
  }
}

t.test('players get what they request by themselves', async (t) => {
  if (!requireTool(t, 'chromium', 'ffmpeg')) return
  const { stream } = startLiveClip(t, { segmentSec: 1, playlistSegments: 20, startSec: 30 })
  const service = new MemoryService()
  service.stored.set('studio', stream)
  const app = await startApp(t, service)
  const context = await (await openBrowser(t)).newContext()
  const play = async ([name, { play, sees }]: [string, Player]) => {
    const exchanges: Exchange[] = []
    const url = await startFaultProxy(t, app.url, async (request, origin) => {
      const reply = await origin(request)
      if (request.url.startsWith('/video/')) exchanges.push({ ...request, reply })
      return reply
    })
    await play(t, `${url}/video/studio/master.m3u8`, context)
    for (const what of sees) {
      // A seek to the live edge looks like playback.
      t.ok(await until(`${name} sees ${what}`, () => exchanges.some(EXCHANGES[what])))
    }
    const refused = exchanges.filter(({ reply }) => ![200, 206, 304].includes(reply.status))
    t.strictSame(
      refused.map(({ url, reply }) => `${reply.status} ${url}`),
      [],
      `${name} is refused nothing`,
    )
  }
  await Promise.all(Object.entries(PLAYERS).map(play))
})
