/**
 * Publishes with a stream key that leaked, after its owner has noticed.
 *
 * @module
 */
import { connect } from '../../../src/srt/index.ts'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'

const ROUNDS = 5

/** @returns how often the leaked key, and the one issued after it was revoked, were let in */
export async function publishWithLeakedKeys(target: Target, signal: AbortSignal) {
  const { host, httpPort, srtPort, hmacSecret } = target
  const call = async (name: 'start-stream' | 'stop-stream', body: object) =>
    (await callApi(`http://${host}:${httpPort}`, name, body, hmacSecret)).body.data
  const isLetIn = async (streamId: string) => {
    const caller = await connect({ host, port: srtPort, streamId }).catch((error: Error) => {
      // A timeout says nothing about the key.
      if (!('code' in error) || error.code !== 'SRT_REJECTED') throw error
    })
    await caller?.close()
    return caller !== undefined
  }
  const figures = { rounds: 0, leakedLetIn: 0, newLetIn: 0 }
  while (figures.rounds < ROUNDS && !signal.aborted) {
    const id = { stream_id: `leaked-${figures.rounds++}` }
    const { stream_key: leaked } = await call('start-stream', id)
    await call('stop-stream', { ...id, revoke: true })
    const { stream_key: renewed } = await call('start-stream', id)
    if (await isLetIn(String(leaked))) figures.leakedLetIn++
    if (await isLetIn(String(renewed))) figures.newLetIn++
    await call('stop-stream', id)
  }
  return figures
}
