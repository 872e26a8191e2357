/**
 * What the server keeps of the selected stream: URLs, tracks, an interruption, its stream keys, its time line, and its
 * webhooks.
 *
 * @module
 */
import { call } from './calls.ts'
import { openRevoke } from './dialogs.ts'
import { byId, make, setText } from './dom.ts'
import { bitrate, count, duration, milliseconds, time } from './format.ts'
import type {
  ArchiveFigures,
  KeyFigures,
  SourceName,
  StreamDetail,
  StreamEvent,
  TrackFigures,
  WebhookDelivery,
} from './wire.ts'

/** Time between two requests. */
const INTERVAL_MS = 2000

const EVENTS: Readonly<Record<StreamEvent['type'], string>> = {
  started: 'Started',
  resumed: 'Resumed by an earlier key',
  key: 'Stream key issued',
  connected: 'Encoder connected',
  live: 'Live',
  source: 'Source switched',
  'standby-lost': 'Standby encoder gone',
  lost: 'Interrupted',
  'reader-connected': 'Reader connected',
  'reader-left': 'Reader gone',
  'push-connected': 'Push connected',
  'push-lost': 'Push lost',
  'archive-started': 'Archive begun',
  'archive-completed': 'Archive complete',
  'archive-failed': 'Archive lacks media',
  rejected: 'Encoder rejected',
  warning: 'Warning',
  'webhook-failed': 'Webhook failed',
  stopped: 'Stopped',
}

const INTERRUPTIONS: Readonly<Record<string, string>> = {
  shutdown: 'the encoder closed the connection',
  timeout: 'nothing arrived from the encoder any more',
  'no-media': 'the encoder sends neither video nor audio',
  'bitrate-exceeded': 'the bitrate was over the limit',
  'too-costly': 'the media takes too much CPU',
  overloaded: 'the service was overloaded',
  kicked: 'an operator disconnected the encoder',
  draining: 'the node is being drained',
}

const STOPS: Readonly<Record<string, string>> = {
  api: 'by a call of the API or here',
  'grace-expired': 'no encoder came back in time',
  'key-expired': 'no encoder came before the key expired',
  shutdown: 'the service shut down',
}

export const SOURCES: Readonly<Record<SourceName, string>> = {
  main: 'Main encoder',
  backup: 'Backup encoder',
  slate: 'Slate',
}

const SWITCHES: Readonly<Record<string, string>> = {
  lost: 'no media from the one before',
  recovered: 'an encoder of higher priority sends media',
  requested: 'by a call of the API or here',
}

const ARCHIVES: Readonly<Record<ArchiveFigures['state'], string>> = {
  RUNNING: 'Archive',
  BEHIND: 'Archive is behind',
  COMPLETE: 'Archive complete',
  FAILED: 'Archive incomplete',
}

const OUTCOMES: Readonly<Record<WebhookDelivery['outcome'], string>> = {
  delivered: 'delivered',
  retried: 'failed, is retried',
  dropped: 'dropped',
}

/** Calling order: `open`, then `refresh` with each snapshot, `close`. */
export class StreamJournal {
  #streamId: string | undefined
  #detail: StreamDetail | undefined
  #askedMs = -Infinity

  open(streamId: string): void {
    this.close()
    this.#streamId = streamId
  }

  close(): void {
    this.#streamId = undefined
    this.#detail = undefined
    this.#askedMs = -Infinity
    for (const id of ['interruption', 'key-section']) byId(id).hidden = true
    for (const id of ['events', 'webhooks', 'tracks', 'keys']) byId(id).replaceChildren()
  }

  /** Since when there is no media, in milliseconds since 1970; undefined unless the stream is interrupted. */
  get interruptedMs(): number | undefined {
    return this.#detail?.interruption?.sinceMs
  }

  refresh(nowMs: number): void {
    this.#showInterruption(nowMs)
    if (this.#streamId === undefined || nowMs - this.#askedMs < INTERVAL_MS) return
    this.#askedMs = nowMs
    void this.#load(this.#streamId, nowMs)
  }

  async #load(streamId: string, nowMs: number): Promise<void> {
    const detail = await call<StreamDetail>(`streams/${streamId}/detail`).catch(() => undefined)
    if (detail === undefined || streamId !== this.#streamId) return
    this.#detail = detail
    this.#showInterruption(nowMs)
    show(streamId, detail)
  }

  #showInterruption(nowMs: number): void {
    const { interruption, stopsAtMs } = this.#detail ?? {}
    byId('interruption').hidden = interruption === undefined
    if (interruption === undefined) return
    const { sinceMs, reason } = interruption
    const left = stopsAtMs === undefined ? '' : countdown(stopsAtMs - nowMs)
    setText(
      byId('interruption'),
      `Interrupted since ${time(sinceMs)}, for ${duration(nowMs - sinceMs)}: ${INTERRUPTIONS[reason] ?? reason}. ` +
        (left && `Stops in ${left} unless an encoder connects.`),
    )
  }
}

function show(streamId: string, detail: StreamDetail): void {
  const { playlistUrl, masterUrl, latency, tracks, keys, events, webhooks, isElsewhere } = detail
  byId('playlist-url', HTMLInputElement).value = playlistUrl
  byId('master-url', HTMLInputElement).value = masterUrl
  setText(
    byId('latency'),
    latency === undefined
      ? ''
      : `Expected latency ${milliseconds(latency.expectedMs)}: SRT ${milliseconds(latency.srtMs)}, media ${milliseconds(latency.partMs)}, players ${milliseconds(latency.holdBackMs)} from the live edge; without encoder and display.`,
  )
  showArchive(detail.archive)
  showItems(byId('tracks'), tracks.map(trackItem))
  byId('key-section').hidden = keys.length === 0
  showItems(
    byId('keys'),
    keys.map((key) => keyItem(streamId, key)),
  )
  showItems(byId('events'), events.map(eventItem))
  showItems(byId('webhooks'), webhooks.map(webhookItem))
  const none = isElsewhere
    ? 'The node that owns the stream has them: open its dashboard.'
    : 'None so far.'
  setText(byId('no-events'), events.length === 0 ? none : '')
  setText(byId('no-webhooks'), webhooks.length === 0 ? none : '')
}

function showArchive(archive: ArchiveFigures | undefined): void {
  byId('archive').hidden = archive === undefined
  if (archive === undefined) return
  const { state, url = '', durationSec, gapSec, lagSec, error } = archive
  const figures = [
    `${ARCHIVES[state]}, ${duration(durationSec * 1000)}`,
    gapSec > 0 && `${duration(gapSec * 1000)} missing`,
    lagSec > 0 && `${duration(lagSec * 1000)} behind`,
    error,
  ]
  setText(byId('archive-state'), figures.filter(Boolean).join(' · '))
  const link = byId('archive-url', HTMLAnchorElement)
  link.hidden = !url.startsWith('http')
  link.href = url
}

/** Replaces the items unless they are the same: a screen reader or a selection may be in them. */
function showItems(list: HTMLElement, items: readonly HTMLElement[]): void {
  const shown = [...list.children]
  const isSame =
    items.length === shown.length && items.every((item, index) => item.isEqualNode(shown[index]!))
  if (!isSame) list.replaceChildren(...items)
}

function trackItem({ text, bitrateBps, gopSec }: TrackFigures): HTMLElement {
  const figures = [
    bitrateBps === undefined ? '' : bitrate(bitrateBps),
    gopSec === undefined ? '' : `key frames every ${gopSec.toFixed(1)} s`,
  ].filter(Boolean)
  return make('li', {}, make('b', { textContent: text }), ` ${figures.join(' · ')}`)
}

function keyItem(streamId: string, key: KeyFigures): HTMLElement {
  const { id, source, issuedMs, expiresMs, usedMs } = key
  const encoder = SOURCES[source].toLowerCase()
  const issued = issuedMs === undefined ? 'at an unknown time' : time(issuedMs)
  const used = usedMs === undefined ? 'not used yet' : `last used ${time(usedMs)}`
  const button = make('button', { type: 'button', textContent: 'Revoke' })
  const name = `${encoder} key issued ${issued}`
  button.setAttribute('aria-label', `Revoke: ${name}`)
  button.addEventListener('click', () => openRevoke(streamId, id, name))
  const figures = make('p', {
    className: 'quiet',
    textContent: `expires ${time(expiresMs)} · ${used}`,
  })
  const title = make('b', { textContent: `${SOURCES[source]}, issued ${issued}` })
  return make('li', {}, make('div', {}, title, figures), button)
}

function eventItem({ timeMs, type, detail, times }: StreamEvent): HTMLElement {
  const words = wordsOf(type, detail)
  const item = make(
    'li',
    {},
    timeOf(timeMs),
    make('b', { textContent: EVENTS[type] }),
    make('span', {
      textContent: [words, times && `${count(times)} times`].filter(Boolean).join(', '),
    }),
  )
  item.dataset['type'] = type
  return item
}

function wordsOf(type: StreamEvent['type'], detail: string): string {
  if (type === 'lost') return INTERRUPTIONS[detail] ?? detail
  if (type === 'stopped') return STOPS[detail] ?? detail
  if (type !== 'source') return detail
  // For example `main to backup: lost`.
  const [from, , to, reason] = detail.split(/:? /)
  return `${SOURCES[from as SourceName]} to ${SOURCES[to as SourceName]}: ${SWITCHES[reason!]}`
}

function webhookItem(delivery: WebhookDelivery): HTMLElement {
  const { timeMs, type, receiver, outcome, attempts, status, failure } = delivery
  const answer = failure ?? (status === undefined ? '' : `answered ${status}`)
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`
  const item = make(
    'li',
    {},
    timeOf(timeMs),
    make('b', { textContent: type }),
    make('span', {
      textContent: `${receiver}: ${[OUTCOMES[outcome], answer, tries].filter(Boolean).join(', ')}`,
    }),
  )
  item.dataset['type'] = outcome
  return item
}

function timeOf(ms: number): HTMLTimeElement {
  return make('time', { dateTime: new Date(ms).toISOString(), textContent: time(ms) })
}

/** For example `1:05`. */
function countdown(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
