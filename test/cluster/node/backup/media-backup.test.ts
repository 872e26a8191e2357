import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import t from 'tap'
import { machineClock } from '../../../../src/timing/clock.ts'
import type { Handover } from '../../../../src/cluster/registry/registered.ts'
import { completeSettings } from '../../../../src/config/complete-settings.ts'
import type { CheckpointChange, StreamCheckpoint } from '../../../../src/hls/playlist/checkpoint.ts'
import type { FileStore } from '../../../../src/hls/store/file-store.ts'
import { createStreamFile } from '../../../../src/hls/store/stream-file.ts'
import { createLogger } from '../../../../src/logger.ts'
import { MediaBackup } from '../../../../src/cluster/node/backup/media-backup.ts'
import {
  encodeHead,
  encodeRows,
} from '../../../../src/cluster/node/registered/registered-checkpoint.ts'
import type { LiveStream } from '../../../../src/stream/live-stream.ts'
import { until } from '../../../support/until.ts'
import { MemoryRedis } from './memory-redis.ts'

const INIT = 'e-v1-0f1e2d3c4b5a.mp4'

t.test('the next owner reads the init segments of the segments that it reads', async (t) => {
  const { url: redisUrl } = await new MemoryRedis().listen(t)
  const secret = () => randomBytes(32).toString('hex')
  const config = completeSettings({
    ...{ hmacSecret: secret(), jwtSecret: secret(), clusterSecret: secret() },
    ...{ redisUrl, clusterBackup: true },
  })
  const open = async () => {
    const backup = new MediaBackup(config, createLogger('silent'), machineClock)
    t.teardown(() => backup.close())
    backup.connect()
    return backup
  }
  const names = ['e-7.ts', 'e-v1-7.m4s', INIT]
  const files = new Map(names.map((name) => [name, randomBytes(500)]))
  const lent = new Set<string>()
  const lend: FileStore['lend'] = (name) => {
    const chunks = [files.get(name)!]
    lent.add(name)
    const file = createStreamFile('segment', { chunks, version: name, targetDurationSec: 2 })
    return { file, end: () => void lent.delete(name) }
  }
  const media = { sizeBytes: 500, independent: true, gap: false }
  const checkpoint: StreamCheckpoint = {
    media: { formats: ['ts', 'cmaf'], segmentSec: 2, playlistSegments: 6 },
    targets: { targetSec: 2 },
    free: { media: 8, discontinuity: 1 },
    listedFrom: 7,
    renditions: [
      { name: 'main', listed: true },
      { name: 'cmaf-video-1', listed: true },
    ],
    dateRanges: [],
    rows: [
      {
        ...{ mediaSequence: 7, discontinuitySequence: 0, discontinuity: false },
        ...{ programDateTimeMs: 1e12, durationSec: 2 },
        segments: [
          { rendition: 'main', uri: 'e-7.ts', ...media },
          { rendition: 'cmaf-video-1', uri: 'e-v1-7.m4s', map: INIT, ...media },
        ],
      },
    ],
  }
  const { rows, ...head } = checkpoint
  const stream = new EventEmitter<{ checkpoint: [change: CheckpointChange] }>()
  const owner = await open()
  owner.follow(
    Object.assign(stream, {
      ...{ id: 'studio', files: { lend }, checkpoint: { ...checkpoint, rows: [] } },
    }) as unknown as LiveStream,
  )
  // Waits for the connection.
  const nothing = await owner.read(continuationOf(head, []))
  t.equal(nothing(INIT), undefined)
  stream.emit('checkpoint', { head, rows, oldest: 7 })
  t.equal(lent.size, 3)
  await until('all is written', () => lent.size === 0)

  const mediaOf = await (await open()).read(continuationOf(head, rows))
  for (const name of names) t.same(mediaOf(name), [files.get(name)], name)
  t.equal(mediaOf('e-a1-7.m4s'), undefined)
})

/** A stream as the registry has it for the next owner. */
function continuationOf(
  head: Omit<StreamCheckpoint, 'rows'>,
  rows: StreamCheckpoint['rows'],
): Handover {
  return {
    stream: {
      ...{ id: 'studio', run: 1, fence: 1, epoch: 'e', isYielded: false, options: {} },
      ...{ startedAtMs: 0, keyExpiresAtMs: 0, keys: {} },
      status: 'INTERRUPTED',
    },
    ...encodeHead(head),
    entries: encodeRows(rows),
  }
}
