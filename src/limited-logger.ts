/**
 * A log that cannot fill a disk: of each kind of line five are written at once, then one a second with a count of those
 * dropped, and of all kinds together 20 a second.
 *
 * @module
 */
import type { Clock } from './clock.ts'
import type { Logger } from './logger.ts'
import { TokenBucket } from './token-bucket.ts'

const LINES_AT_ONCE = 5
const LINES_PER_SEC = 1

/** Lines of all kinds together. At a restart hundreds of streams write a few each, at once. */
const MAX_LINES_AT_ONCE = 1000
const MAX_LINES_PER_SEC = 20

/** The kinds that were written last; of others nothing is remembered. */
const MAX_KINDS = 1000

interface Kind {
  readonly bucket: TokenBucket
  unlogged: number
}

/**
 * The same log with a bound on `info`, `warn` and `error`, and on those of its children. A kind is the words before the
 * first figure or colon, at one level, with one `code` and one `webhook`, of one child. Field `unlogged` counts lines of
 * the kind that were dropped before, `unlogged_others` those of kinds that are not remembered any more.
 */
export function limitLines(logger: Logger, clock: Pick<Clock, 'nowUs'>): Logger {
  const kinds = new Map<string, Kind>()
  const all = new TokenBucket(MAX_LINES_PER_SEC, clock.nowUs(), MAX_LINES_AT_ONCE)
  let unloggedOthers = 0

  const take = (name: string): Kind => {
    const kind = kinds.get(name) ?? {
      bucket: new TokenBucket(LINES_PER_SEC, clock.nowUs(), LINES_AT_ONCE),
      unlogged: 0,
    }
    // Moved behind all others: the first is the kind that has been quiet for longest.
    kinds.delete(name)
    kinds.set(name, kind)
    const [oldest] = kinds
    if (kinds.size > MAX_KINDS && oldest !== undefined) {
      kinds.delete(oldest[0])
      unloggedOthers += oldest[1].unlogged
    }
    return kind
  }

  const limit = (inner: Logger, scope: string): Logger => {
    const write =
      (level: 'info' | 'warn' | 'error') =>
      (first: object | string, rest?: string): void => {
        const [fields, message] = typeof first === 'string' ? [{}, first] : [first, rest ?? '']
        const { code, webhook } = fields as { code?: unknown; webhook?: unknown }
        const [words = ''] = /^[^:\d]*/.exec(message) ?? []
        const kind = take(JSON.stringify([scope, level, code, webhook, words]))
        const nowUs = clock.nowUs()
        if (!kind.bucket.take(nowUs) || !all.take(nowUs)) return void kind.unlogged++
        const counts = {
          ...(kind.unlogged > 0 && { unlogged: kind.unlogged }),
          ...(unloggedOthers > 0 && { unlogged_others: unloggedOthers }),
        }
        inner[level]({ ...fields, ...counts }, message)
        kind.unlogged = 0
        unloggedOthers = 0
      }
    const child = (fields: object) => limit(inner.child(fields), scope + JSON.stringify(fields))
    const own = { info: write('info'), warn: write('warn'), error: write('error'), child }
    return Object.assign(Object.create(inner) as Logger, own)
  }
  return limit(logger, '')
}
