/**
 * A publisher that occupies its stream and sends no media.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../../src/srt/index.ts'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'

/** Tests and benches run in the folder of the project. */
const CLIP = 'fixtures/demo.mpegts'
const PAYLOAD_BYTES = 1316
const POLL_MS = 250

/** ISO/IEC 13818-1 2.4.3.3: stuffing. */
const NULL_PACKETS = Buffer.alloc(PAYLOAD_BYTES, 0xff)
for (let at = 0; at < PAYLOAD_BYTES; at += 188) NULL_PACKETS.set([0x47, 0x1f, 0xff, 0x10], at)

export interface SilentPublisherReport {
  /** Status polls while it sent only stuffing: those with `live`, and all. */
  readonly livePolls: number
  readonly polls: number
  /** Whether a second encoder with the same key was admitted. */
  readonly replaced: boolean
}

/** Sends 8 s of media as fast as it is taken, then stuffing until a second encoder of its own has taken over. */
export async function holdStreamWithoutMedia(
  target: Target,
  signal: AbortSignal,
): Promise<SilentPublisherReport> {
  const url = `http://${target.host}:${target.httpPort}`
  const call = (name: 'start-stream' | 'status') =>
    callApi(url, name, { stream_id: 'silent' }, target.hmacSecret)
  const { body } = await call('start-stream')
  const options = {
    host: target.host,
    port: target.srtPort,
    streamId: body.data['stream_key'] as string,
  }
  const silent = await connect(options)
  const clip = readFileSync(CLIP)
  for (let at = 0; at < clip.length && !signal.aborted; at += PAYLOAD_BYTES) {
    const payload = clip.subarray(at, at + PAYLOAD_BYTES)
    while (!silent.send(payload) && !signal.aborted) await sleep(1)
  }
  const isLive = async () => (await call('status')).body.data['live'] === true
  while (!signal.aborted && !(await isLive())) await sleep(POLL_MS / 10)
  let [livePolls, polls] = [0, 0]
  let second: Awaited<ReturnType<typeof connect>> | undefined
  while (!signal.aborted && second === undefined) {
    silent.send(NULL_PACKETS)
    polls++
    if (await isLive()) livePolls++
    else second = await connect(options).catch(() => undefined)
    await sleep(POLL_MS)
  }
  await silent.close()
  await second?.close()
  return { livePolls, polls, replaced: second !== undefined }
}
