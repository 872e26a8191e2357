/**
 * The rules of delivery, kept for curl on a stream in real time, over each protocol.
 */
import t from 'tap'
import { startEdge } from '../../cluster/edge/edge-app.ts'
import { curl } from '../support/curl.ts'
import { startLiveClip } from '../support/live-clip.ts'
import { requireTool } from '../support/tools.ts'
import { checkDelivery, checkEnded, checkStalled, type DeliveryTarget } from './delivery-rules.ts'
import { MemoryService, startApp, startHttpsApp } from '../../http/memory-service.ts'

t.test('delivery keeps the rules of HTTP', async (t) => {
  if (!requireTool(t, 'curl')) return
  const clip = startLiveClip(t, {
    partSec: 0.5,
    segmentSec: 2,
    playlistSegments: 20,
    startSec: 50,
  })
  const service = new MemoryService()
  service.stored.set('studio', clip.stream)
  const [plain, secure] = [await startApp(t, service), await startHttpsApp(t, service)]
  const edge = await startEdge(t, plain.url)
  const path = '/video/studio/cmaf-video-1.m3u8'
  const target = (url: string, version: '1.1' | '2'): DeliveryTarget => ({
    playlistUrl: url + path,
    flags: [version === '2' ? '--http2' : '--http1.1'],
    version,
    clip,
  })
  const targets: Record<string, DeliveryTarget> = {
    'over HTTP/1.1': target(plain.url, '1.1'),
    'over TLS with HTTP/1.1': target(secure.url, '1.1'),
    'through an edge': target(edge.url, '1.1'),
    'over TLS with HTTP/2': target(secure.url, '2'),
  }
  for (const [name, target] of Object.entries(targets)) {
    await t.test(name, (t) => checkDelivery(t, target))
  }
  const [upgrade] = await curl(['--http2'], [{ url: plain.url + path }])
  t.match(upgrade, { status: 200, version: '1.1' }, 'an upgrade to HTTP/2 without TLS is ignored')
  clip.stall()
  await t.test('while no media comes', async (t) => {
    await Promise.all(Object.values(targets).map((target) => checkStalled(t, target)))
  })
  clip.stream.stop('api')
  await t.test('after the end', async (t) => {
    await Promise.all(Object.values(targets).map((target) => checkEnded(t, target)))
  })
  t.strictSame([...plain.log, ...secure.log], [])
})
