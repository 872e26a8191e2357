/**
 * Callers with one valid key that fill the waiting places of a busy stream.
 *
 * @module
 */
import { connect } from '../../../src/srt/index.ts'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'
import { flood, type Flood } from './handshakes.ts'

/**
 * Publishes a stream of its own, and calls for it again and again from other addresses.
 *
 * @param options  default: 60,000 conclusions at 3000 a second, from 3 networks
 */
export async function fillWaitingPlaces(
  target: Target,
  signal: AbortSignal,
  options: Partial<Flood> = {},
): ReturnType<typeof flood> {
  const url = `http://${target.host}:${target.httpPort}`
  const { body } = await callApi(url, 'start-stream', { stream_id: 'crowded' }, target.hmacSecret)
  const streamId = body.data['stream_key'] as string
  const publisher = await connect({ host: target.host, port: target.srtPort, streamId })
  try {
    return await flood(target, signal, {
      networks: 3,
      perSec: 3000,
      conclusions: 60_000,
      subnet: 77,
      streamId: () => streamId,
      ...options,
      onBurst: (sent) => {
        publisher.send(Buffer.alloc(188, 0x47))
        options.onBurst?.(sent)
      },
    })
  } finally {
    await publisher.close()
  }
}
