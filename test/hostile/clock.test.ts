/**
 * The wall clock of the machine jumps 3 h ahead while the service runs, and back: NTP, or an operator's mistake.
 */
import t from 'tap'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { startService } from '../support/service.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { until } from '../support/until.ts'

const CLIP = new URL('../../fixtures/demo.mpegts', import.meta.url)
const JUMP_MS = 3 * 3600 * 1000
/** Tolerance for a busy machine, far below the jump. */
const TOLERANCE_MS = 60_000

/** Wall clock of the machine, which `jump` shifts for this process. */
const machineMs = Date.now
const jump = (ms: number) => void (Date.now = () => machineMs() + ms)

t.test(
  'a wall clock that jumps 3 h ahead and back neither expires keys nor moves dates',
  async (t) => {
    t.teardown(() => jump(0))
    const { server } = await startService(t, { hls: { segmentSec: 1 } })
    await server.startStream({ streamId: 'waiting' })
    const { srtUrl } = await server.startStream({ streamId: 'studio' })
    const judge = new StreamJudge()
    const complaints: string[] = []
    const offMs: number[] = []

    const publishUntilLive = async () => {
      const stop = new AbortController()
      const encoder = publish({ file: CLIP, url: srtUrl, loop: true, signal: stop.signal })
      await Promise.race([encoder, until('live', () => server.status('studio').live)])
      stop.abort()
      await encoder
      await until('gone', () => server.status('studio').status === 'INTERRUPTED')
      const text = server.findStream('studio')!.files.get('playlist.m3u8')!.chunks.join('')
      complaints.push(...judge.playlist('playlist.m3u8', text))
      const newest = parseM3u8(text).manifest.segments?.at(-1)
      offMs.push(newest!.programDateTime! - machineMs())
    }

    jump(JUMP_MS)
    await publishUntilLive()
    t.equal(server.status('waiting').status, 'READY', 'its key is as valid as before')
    const { expiresAt } = await server.startStream({ streamId: 'other' })
    const lifetimeMs = expiresAt.getTime() - machineMs()
    t.ok(Math.abs(lifetimeMs - 2 * 3600 * 1000) < TOLERANCE_MS, 'a key issued meanwhile lives 2 h')

    jump(0)
    await publishUntilLive()
    for (const ms of offMs) t.ok(Math.abs(ms) < TOLERANCE_MS, `dates are ${Math.round(ms)} ms off`)
    t.strictSame(complaints, [])

    jump(-JUMP_MS)
    await publishUntilLive()
    t.ok(Math.abs(offMs.at(-1)!) < TOLERANCE_MS, 'a jump back does not move them')
    t.equal(server.status('waiting').status, 'READY')
    t.equal(server.status('studio').totals.publishers, 3)
  },
)
