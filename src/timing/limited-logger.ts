/**
 * Rate limit of the log, so that it cannot fill a disk. By default each kind of line has a burst of 5, then one line a
 * second with the number of dropped lines. All kinds together have a burst of 1000, then 20 lines a second.
 *
 * @module
 */
import type { Clock } from './clock.ts'
import type { Logger } from '../logger.ts'
import { TokenBucket } from './token-bucket.ts'

/** Bounds of one kind of line and, with the prefix `max`, of all kinds together. */
interface LineLimits {
  readonly linesAtOnce: number
  readonly linesPerSec: number
  readonly maxLinesAtOnce: number
  readonly maxLinesPerSec: number
}

/** At a restart, hundreds of streams write a few lines each. */
const DEFAULT_LIMITS: LineLimits = {
  linesAtOnce: 5,
  linesPerSec: 1,
  maxLinesAtOnce: 1000,
  maxLinesPerSec: 20,
}

/** Limits of the audit log: those of a client with a valid signature that calls without end. */
export const AUDIT_LIMITS: LineLimits = {
  linesAtOnce: 1000,
  linesPerSec: 100,
  maxLinesAtOnce: 1000,
  maxLinesPerSec: 100,
}

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
export function limitLines(
  logger: Logger,
  clock: Pick<Clock, 'nowUs'>,
  limits = DEFAULT_LIMITS,
): Logger {
  const kinds = new Map<string, Kind>()
  const all = new TokenBucket(limits.maxLinesPerSec, clock.nowUs(), limits.maxLinesAtOnce)
  let unloggedOthers = 0

  const take = (name: string): Kind => {
    const kind = kinds.get(name) ?? {
      bucket: new TokenBucket(limits.linesPerSec, clock.nowUs(), limits.linesAtOnce),
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

  /** @param scope  names the child; `inner` creates it for each line, since a child does not follow the level of its parent */
  const limit = (inner: () => Logger, scope: string): Logger => {
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
        inner()[level]({ ...fields, ...counts }, message)
        kind.unlogged = 0
        unloggedOthers = 0
      }
    const child = (fields: object) =>
      limit(() => inner().child(fields), scope + JSON.stringify(fields))
    const own = { info: write('info'), warn: write('warn'), error: write('error'), child }
    return Object.assign(Object.create(inner()) as Logger, own)
  }
  return limit(() => logger, '')
}
