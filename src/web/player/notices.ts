/**
 * Notices in place of a moving picture: words for viewers, who know nothing of encoders and error codes.
 *
 * @module
 */
const TIME_FORMAT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })

const CIRCLE = 'M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18'

/** Drawing of a wait that ends within seconds; it turns. */
export const SPINNER = 'M21 12a9 9 0 1 1-6.2-8.6'

/** Paths in a square of 24. */
const ICONS = {
  clock: `${CIRCLE}M12 7.5V12l3 2`,
  pause: `${CIRCLE}M10 9v6m4-6v6`,
  stop: `${CIRCLE}M9.5 9.5h5v5h-5z`,
  question: `${CIRCLE}M9.5 9.7a2.5 2.5 0 1 1 3.7 2.2c-.8.5-1.2 1-1.2 1.9m0 2.7v.01`,
  lock: 'M6 11h12v9H6zM8.5 11V7.5a3.5 3.5 0 0 1 7 0V11',
  offline: 'M3 9.5a13 13 0 0 1 18 0M6.5 13.5a8 8 0 0 1 11 0M10 17l4 4m0-4l-4 4',
  screen: 'M3 5h18v12H3zM8 21h8M10 9l4 4m0-4l-4 4',
}

export interface Notice {
  readonly icon: string
  readonly title: string
  /** What happens next, or what the viewer can do. */
  readonly text: string
  /** Words before the time since when it is so; undefined: it is over too soon for a time, or always was so. */
  readonly since?: string
  /** Whether the seconds so far are counted. */
  readonly counts?: boolean
}

/** At the start, and after an interruption. */
const STARTING = {
  icon: SPINNER,
  title: 'The stream is about to play',
  since: 'Since',
  counts: true,
}

/** Notices by status of the stream, and by what else keeps the page from playing it. */
export const NOTICES = {
  READY: {
    icon: ICONS.clock,
    title: 'The stream has not started',
    text: 'It plays here as soon as it does.',
    since: 'Announced',
  },
  STREAMING: {
    ...STARTING,
    text: 'The picture comes as soon as its first seconds are complete.',
  },
  LATE: {
    ...STARTING,
    text: 'This takes longer than usual. There is nothing to do: it plays here by itself.',
  },
  LIVE: { icon: SPINNER, title: 'The stream is live', text: 'Loading the picture …' },
  INTERRUPTED: {
    icon: ICONS.pause,
    title: 'The stream is interrupted',
    text: 'It resumes here by itself.',
    since: 'Since',
  },
  STOPPED: {
    icon: ICONS.stop,
    title: 'The stream has ended',
    text: 'If it starts again, it plays here.',
    since: 'Ended',
  },
  UNKNOWN: {
    icon: ICONS.question,
    title: 'No stream of this name',
    text: 'Check the address. If it starts later, it plays here.',
    since: 'Looking since',
  },
  FORBIDDEN: {
    icon: ICONS.lock,
    title: 'No access to this stream',
    text: 'This address has expired, or never was valid. Ask for a new one where you got it.',
    since: 'Since',
  },
  UNREACHABLE: {
    icon: ICONS.offline,
    title: 'No connection to the server',
    text: 'Trying again every second. If it stays so, check your own connection.',
    since: 'Since',
  },
  UNSUPPORTED: {
    icon: ICONS.screen,
    title: 'This browser cannot play the stream',
    text: 'Open this page in a current Chrome, Edge, Firefox or Safari.',
  },
  FAILED: {
    icon: SPINNER,
    title: 'The picture does not play',
    text: 'Trying again. If it stays so, reload the page, or open it in another browser.',
    since: 'Since',
  },
} as const satisfies Readonly<Record<string, Notice>>

/** Dates in ISO 8601. */
interface Times {
  readonly since?: string | undefined
  /** End of an interrupted stream, unless it comes back. */
  readonly stops_at?: string | undefined
}

/** A time with its zone, as the dashboard has it: `26 Nov 2026, 14:05:09 CET`. */
export function formatTime(ms: number): string {
  return TIME_FORMAT.format(ms)
}

/** For example `Since 26 Nov 2026, 14:05:09 CET, 0:06 so far`. @param nowMs  milliseconds since 1970 */
export function timesOf(notice: Notice, { since, stops_at: end }: Times, nowMs: number): string {
  if (notice.since === undefined || since === undefined) return ''
  const sinceMs = Date.parse(since)
  const text = `${notice.since} ${formatTime(sinceMs)}`
  const soFar = notice.counts ? formatDuration(nowMs - sinceMs) : undefined
  if (soFar !== undefined) return `${text}, ${soFar} so far`
  const left = end === undefined ? undefined : formatDuration(Date.parse(end) - nowMs)
  return left === undefined ? text : `${text}. If it stays away, it ends in ${left}.`
}

/** @returns `m:ss`; undefined from an hour on, which nobody watches pass */
function formatDuration(ms: number): string | undefined {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds >= 3600) return undefined
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
