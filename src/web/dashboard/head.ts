/**
 * Figures of the whole service, at the top of the page, and the band that says that there are none.
 *
 * @module
 */
import { byId, setCutOff, setText, showFigures } from './dom.ts'
import { bitrate, count, duration, memory, NONE, time } from './format.ts'
import type { ProcessFigures, Snapshot } from './wire.ts'

export class Head {
  readonly #band = byId('unreachable')
  #timer = 0
  /** Time of the latest snapshot by the server's clock, and when it came by the browser's. */
  #timeMs: number | undefined
  #receivedMs = 0

  show({ totals, process, load, timeMs }: Snapshot): void {
    this.#timeMs = timeMs
    this.#receivedMs = performance.now()
    const { live, viewers, inBps, outBps, warned } = totals
    setText(byId('version'), process?.version ?? '')
    showFigures(byId('totals'), [
      ['Live', count(live)],
      ['Viewers', count(viewers)],
      ['In', bitrate(inBps)],
      ['Out', bitrate(outBps)],
      ['Warnings', count(warned)],
      ...(process ? figuresOf(process) : []),
    ])
    byId('totals').classList.toggle('warned', warned > 0)
    if (load === undefined) return
    const { loopDelayMs, httpConnections, kernelDrops } = load
    showFigures(byId('load'), [
      ['Event loop late by', `${loopDelayMs.toFixed(0)} ms`],
      ['HTTP connections', count(httpConnections)],
      ['Datagrams dropped by the kernel', count(kernelDrops)],
    ])
  }

  /** Shows the band, with the age of the figures, or takes it away. */
  setReachable(isReachable: boolean): void {
    clearInterval(this.#timer)
    this.#band.hidden = isReachable
    document.body.classList.toggle('stale', !isReachable)
    setCutOff(!isReachable)
    if (isReachable) return
    this.#showAge()
    this.#timer = window.setInterval(() => this.#showAge(), 1000)
  }

  clear(): void {
    this.setReachable(true)
    this.#timeMs = undefined
    byId('process').removeAttribute('open')
    for (const id of ['version', 'totals', 'load']) byId(id).replaceChildren()
  }

  #showAge(): void {
    const age = duration(performance.now() - this.#receivedMs)
    const figures = this.#timeMs && ` The figures are ${age} old, of ${time(this.#timeMs)}.`
    setText(this.#band, `No data from the service.${figures ?? ''} Connecting again …`)
  }
}

function figuresOf(process: ProcessFigures): [string, string][] {
  const { cpuPercent, residentBytes, uptimeSec, hasWorkers } = process
  const which = hasWorkers ? ' of ingest' : ''
  return [
    [`CPU${which}`, cpuPercent === undefined ? NONE : `${cpuPercent} %`],
    [`Memory${which}`, memory(residentBytes)],
    [`Uptime${which}`, duration(uptimeSec * 1000)],
  ]
}
