/**
 * A log that nobody fills: whatever encoders, clients and streams do again and again, of each kind of line a few are
 * written, then one a second, which says how many were left out.
 *
 * @module
 */
import type { Clock } from './clock.ts'
import type { Logger } from './logger.ts'
import { TokenBucket } from './token-bucket.ts'

const LINES_AT_ONCE = 5
const LINES_PER_SEC = 1

/** The kinds that were written last; of the others nothing is remembered. */
const MAX_KINDS = 1000

interface Kind {
  readonly bucket: TokenBucket
  unlogged: number
}

/**
 * The same log with a bound on `info`, `warn` and `error`, and on those of its children. A kind is the words before the first
 * figure or colon, at one level, with the fields of one child; a field `unlogged` says how many of it were left out before.
 */
export function limitLines(logger: Logger, clock: Pick<Clock, 'nowUs'>): Logger {
  const kinds = new Map<string, Kind>()

  const take = (name: string): Kind => {
    const kind = kinds.get(name) ?? {
      bucket: new TokenBucket(LINES_PER_SEC, clock.nowUs(), LINES_AT_ONCE),
      unlogged: 0,
    }
    // Put behind all others: the first is the one of which nothing came for longest.
    kinds.delete(name)
    kinds.set(name, kind)
    const [oldest] = kinds.keys()
    if (kinds.size > MAX_KINDS && oldest !== undefined) kinds.delete(oldest)
    return kind
  }

  const limit = (inner: Logger, scope: string): Logger => {
    const write =
      (level: 'info' | 'warn' | 'error') =>
      (first: object | string, rest?: string): void => {
        const [fields, message] = typeof first === 'string' ? [{}, first] : [first, rest ?? '']
        const [words = ''] = /^[^:\d]*/.exec(message) ?? []
        const kind = take(`${scope} ${level} ${words}`)
        if (!kind.bucket.take(clock.nowUs())) return void kind.unlogged++
        inner[level]({ ...fields, ...(kind.unlogged > 0 && { unlogged: kind.unlogged }) }, message)
        kind.unlogged = 0
      }
    const child = (fields: object) => limit(inner.child(fields), scope + JSON.stringify(fields))
    const own = { info: write('info'), warn: write('warn'), error: write('error'), child }
    return Object.assign(Object.create(inner) as Logger, own)
  }
  return limit(logger, '')
}
