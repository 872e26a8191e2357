/**
 * The archive of this service, from its settings.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClipReport } from '../api/records.ts'
import type { ClipRequest } from '../api/requests.ts'
import { Archive } from '../archive/archive.ts'
import { S3Store } from '../archive/s3-store.ts'
import { StoreError } from '../archive/store-error.ts'
import { MillraceError } from '../errors.ts'
import { FetchedFiles } from '../hls/store/fetched-files.ts'
import type { Logger } from '../logger.ts'
import { systemClock } from '../timing/clock.ts'
import type { Notifier } from './notifications.ts'
import type { Settings } from './settings-in-use.ts'

/** Segments that are read back at a time, and those that wait for their turn. */
const READERS = 4
const MAX_READS = 256

/** Longest time for one of them: viewers wait no longer. */
const READ_MS = 8000

/** @throws {MillraceError} `ARCHIVE_NOT_FOUND`, `ARCHIVE_UNAVAILABLE` */
export async function makeClip(
  archive: Archive | undefined,
  streamId: string,
  request: ClipRequest,
): Promise<ClipReport> {
  if (archive !== undefined) return archive.clip({ streamId, ...request })
  throw new MillraceError('ARCHIVE_NOT_FOUND', {
    message: 'no such archive: ARCHIVE_URL is not set',
  })
}

interface ArchivingOptions {
  readonly settings: Settings
  readonly logger: Logger
  readonly notifier: Notifier
}

/** @returns undefined without `ARCHIVE_URL` */
export function openArchive({ settings, logger, notifier }: ArchivingOptions): Archive | undefined {
  const { archive, hls } = settings.config
  const { url, endpoint, region, mode, maxMib, publicUrl } = archive
  if (url === '' || mode === 'off') return undefined
  const bucket = { url, endpoint, region, readCredentials: () => settings.secrets.archive }
  const cacheBytes = hls.dvrCacheMib * 1024 * 1024
  const maxFileBytes = cacheBytes / (2 * READERS)
  return new Archive({
    store: new S3Store(bucket),
    mode: mode === 'request' ? 'request' : 'all',
    maxBytes: maxMib * 1024 * 1024,
    url: (publicUrl || url).replace(/\/+$/, ''),
    captions: hls.captions,
    dvrSec: hls.dvrSec,
    rewind: {
      // With connections of its own, so that those who read do not delay what is to be stored.
      store: new S3Store({ ...bucket, connections: READERS, timeLimits: { requestMs: READ_MS } }),
      fetched: new FetchedFiles({
        maxBytes: cacheBytes - READERS * maxFileBytes,
        maxFetches: MAX_READS,
        refusalOf: (error) => {
          if (error instanceof MillraceError) return error
          const isTooLarge = error instanceof StoreError && error.code === 'TOO_LARGE'
          const advice = isTooLarge ? ': raise HLS_DVR_CACHE_MIB' : ''
          logger.warn(`Viewers cannot go back. ${(error as Error).message}${advice}.`)
          return new MillraceError('ARCHIVE_UNAVAILABLE')
        },
      }),
      maxFileBytes,
      publicUrl: publicUrl === '' ? undefined : publicUrl.replace(/\/+$/, ''),
    },
    clock: systemClock,
    random: Math.random,
    pause: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
    onEvent: (stream, event) => notifier.archive(stream, event),
    onStore: (error) => {
      if (error === undefined) logger.info('the store takes the archive again')
      else logger.warn(`The archive waits. ${error}.`)
    },
  })
}
