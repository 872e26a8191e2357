/**
 * The checker's look at the selected stream, and what it found.
 *
 * @module
 */
import { call } from './calls.ts'
import { byId, isDisabled, make, setDisabled, setText } from './dom.ts'
import type { CheckFinding, CheckReport } from './wire.ts'

const GROUPS = [
  ['stops', 'Playback stops'],
  ['stalls', 'Playback stalls'],
  ['degrades', 'Playback suffers'],
  [undefined, 'Against the standard; no player is known to suffer'],
] as const

/** One check at a time; `reset` ends it. */
export class StreamCheck {
  #running = new AbortController()

  reset(): void {
    this.#running.abort()
    setDisabled(byId('check'), false)
    setText(byId('check-status'), '')
    byId('findings').replaceChildren()
  }

  async start(streamId: string): Promise<void> {
    if (isDisabled(byId('check'))) return
    this.reset()
    const { signal } = (this.#running = new AbortController())
    setDisabled(byId('check'), true)
    setText(byId('check-status'), 'Checking for 15 s …')
    try {
      const report = await call<CheckReport>(`streams/${streamId}/check`, {}, signal)
      if (!signal.aborted) show(report)
    } catch (refusal) {
      if (!signal.aborted) setText(byId('check-status'), (refusal as Error).message)
    }
    if (!signal.aborted) setDisabled(byId('check'), false)
  }
}

function show({ playlists, findings, requests, durationSec, isCutShort }: CheckReport): void {
  const found = findings.length === 0 ? 'nothing is wrong' : `${findings.length} rules broken`
  const limit = isCutShort ? ', cut short: the media reached the size limit of a check' : ''
  const effort = `${requests} requests in ${Math.round(durationSec)} s${limit}`
  setText(
    byId('check-status'),
    playlists === 0
      ? 'No playlist could be read: is the stream live?'
      : `Checked: ${found}. ${effort}.`,
  )
  for (const [severity, title] of GROUPS) {
    const group = findings.filter((finding) => finding.severity === severity)
    if (group.length === 0) continue
    byId('findings').append(make('h4', { textContent: title }), ...group.map(findingItem))
  }
}

function findingItem({ requirement, remedy, clause, level, evidence, count }: CheckFinding) {
  const times = count === 1 ? 'once' : `${count} times`
  return make(
    'div',
    { className: 'finding' },
    make('p', { textContent: requirement }),
    make('p', { textContent: evidence.join(' – ') }),
    make('p', {}, make('b', { textContent: 'Remedy: ' }), remedy),
    make('p', { className: 'quiet', textContent: `${level}, ${clause}, ${times}` }),
  )
}
