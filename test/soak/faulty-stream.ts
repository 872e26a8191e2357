/**
 * A live stream of our own in low latency, in two languages, and checks of it through proxies with faults.
 *
 * @module
 */
import { fileURLToPath } from 'node:url'
import { checkStream, type CheckResult } from '../../src/check/check-stream.ts'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startFaultProxy, type Tamper } from '../check/fault-proxy.ts'

const CLIP = fileURLToPath(new URL('../../fixtures/two-languages.mpegts', import.meta.url))

interface Test {
  teardown(close: () => unknown): unknown
}

/** Of CMAF with parts in `master.m3u8`, of transport stream in whole segments in `ts.m3u8`. */
export type MultivariantPlaylist = 'master.m3u8' | 'ts.m3u8'

export interface FaultyStream {
  /** Follows the stream, through a proxy that tampers with it if one is given; by default in low latency. */
  check(options: {
    seconds: number
    tamper?: Tamper
    playlist?: MultivariantPlaylist
  }): Promise<CheckResult>
}

/**
 * Publishes until the end of the test.
 *
 * @param reconnects  whether the encoder reconnects after each clip of 10 s
 */
export async function startFaultyStream(
  t: Test,
  { reconnects = false }: { reconnects?: boolean } = {},
): Promise<FaultyStream> {
  const { server, url } = await startService(t, { hls: { segmentSec: 1 } })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const stop = new AbortController()
  const encoder = (async () => {
    do {
      await publish({
        file: CLIP,
        url: srtUrl,
        loop: !reconnects,
        retry: true,
        signal: stop.signal,
      })
    } while (!stop.signal.aborted)
  })()
  t.teardown(async () => {
    stop.abort()
    await encoder
  })
  // Six segments, the window of a playlist, so that the first are about to leave it.
  await until('a full playlist', async () => {
    const text = await (await fetch(`${url}/video/studio/playlist.m3u8`)).text()
    return (text.match(/^#EXTINF/gm)?.length ?? 0) >= 6
  })
  return {
    check: async ({ seconds, tamper, playlist = 'master.m3u8' }) => {
      const base = tamper === undefined ? url : await startFaultProxy(t, url, tamper)
      return checkStream({ url: `${base}/video/studio/${playlist}`, seconds })
    },
  }
}
