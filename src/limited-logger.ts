/**
 * Rate limit of the log, so that it cannot fill a disk. Each kind of line has a burst of 5, then one line a second with
 * the number of dropped lines. All kinds together have a burst of 1000, then 20 lines a second.
 *
 * @module
 */
import type { Clock } from './clock.ts'
import type { Logger } from './logger.ts'
import { TokenBucket } from './token-bucket.ts'

const LINES_AT_ONCE = 5
const LINES_PER_SEC = 1

/** Limits for all kinds together. At a restart, hundreds of streams write a few lines each. */
const MAX_LINES_AT_ONCE = 1000
const MAX_LINES_PER_SEC = 20

/** Maximum number of remembered kinds: those with the most recent lines. */
const MAX_KINDS = 1000

interface Kind {
  readonly bucket: TokenBucket
  unlogged: number
}

/**
 * Limits `info`, `warn` and `error` of a logger and its children. Lines are of one kind if they have the same child,
 * level, `code`, `webhook`, and text before the first digit or colon. Field `unlogged` is the number of dropped lines
 * of the kind, `unlogged_others` the number of dropped lines of kinds that are no longer remembered.
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
    // Moved to the end, so that the first kind is the one without a line for longest.
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
