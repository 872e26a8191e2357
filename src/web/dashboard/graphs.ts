/**
 * Graphs of the last 10 minutes of a stream: those that the server has kept, then the newest figures.
 *
 * @module
 */
import type uPlotModule from 'uplot'
import { call } from './calls.ts'
import { make, setText } from './dom.ts'
import { bitrate, count, milliseconds, NONE } from './format.ts'
import type { History, SourceName, StreamRow } from './wire.ts'

/** Global of a script that index.html loads. */
declare const uPlot: typeof uPlotModule

type Values = (number | null)[]

interface Graph {
  readonly name: string
  readonly format: (value: number | undefined) => string
  readonly values: Values
}

/** In CSS pixels: with axes, and without on a phone. */
const HEIGHT = 96
const SMALL_HEIGHT = 40

/** Minimum height of the graph of the bitrate: grid lines have whole kbit/s. */
const MIN_BITRATE_BPS = 100_000

/** Distances of grid lines of whole numbers. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000]

export class Graphs {
  readonly #container: HTMLElement
  readonly #dark = matchMedia('(prefers-color-scheme: dark)')
  readonly #phone = matchMedia('(max-width: 40rem)')
  #streamId: string | undefined
  #stepMs = 5000
  #endMs = 0
  #lostInTotal: number | undefined
  #source: SourceName | undefined
  #graphs: Graph[] = []
  #plots: uPlotModule[] = []

  constructor(container: HTMLElement) {
    this.#container = container
    for (const query of [this.#dark, this.#phone]) {
      query.addEventListener('change', () => this.#draw())
    }
    new ResizeObserver(() => {
      for (const plot of this.#plots)
        plot.setSize({ width: widthOf(plot.root.parentElement!), height: this.#height })
    }).observe(container)
  }

  open(streamId: string): void {
    this.close()
    this.#streamId = streamId
    void call<History>(`streams/${streamId}/history`).then(
      (history) => this.#begin(streamId, history),
      () => undefined,
    )
  }

  close(): void {
    this.#streamId = undefined
    this.#graphs = []
    this.#draw()
  }

  /** Adds the figures of a snapshot; one in 5 s is drawn. */
  add(row: StreamRow, timeMs: number): void {
    const { id, encoder, viewers } = row
    if (id !== this.#streamId || this.#graphs.length === 0) return
    const missed = Math.floor((timeMs - this.#endMs) / this.#stepMs)
    if (missed < 1) return
    this.#endMs += missed * this.#stepMs
    const newest = [encoder?.bitrateBps, encoder?.rttMs, this.#lost(row), viewers]
    for (const [index, { values }] of this.#graphs.entries()) {
      const { length } = values
      values.push(...Array<null>(missed - 1).fill(null), newest[index] ?? null)
      values.splice(0, values.length - length)
    }
    this.#refresh()
  }

  /** Packets lost since the previous call; undefined if another source was on air. */
  #lost({ encoder, onAir }: StreamRow): number | undefined {
    const inTotal = encoder?.packetsLost
    const before = onAir === this.#source ? this.#lostInTotal : undefined
    this.#lostInTotal = inTotal
    this.#source = onAir
    if (inTotal === undefined || before === undefined) return undefined
    return inTotal < before ? inTotal : inTotal - before
  }

  #begin(streamId: string, history: History): void {
    if (streamId !== this.#streamId) return
    const { bitrateBps, rttMs, packetsLost, viewers } = history
    this.#stepMs = history.stepSec * 1000
    this.#endMs = history.endMs
    this.#lostInTotal = undefined
    this.#graphs = [
      { name: 'Bitrate', format: bitrate, values: [...bitrateBps] },
      { name: 'Round-trip time', format: milliseconds, values: [...rttMs] },
      { name: 'Packets lost in 5 s', format: count, values: [...packetsLost] },
      { name: 'Viewers', format: count, values: [...viewers] },
    ]
    this.#draw()
  }

  get #height(): number {
    return this.#phone.matches ? SMALL_HEIGHT : HEIGHT
  }

  #data({ values }: Graph): uPlotModule.AlignedData {
    const { length } = values
    const times = values.map(
      (_, index) => (this.#endMs - (length - 1 - index) * this.#stepMs) / 1000,
    )
    return [times, values]
  }

  #draw(): void {
    for (const plot of this.#plots) plot.destroy()
    this.#container.replaceChildren()
    const style = getComputedStyle(document.documentElement)
    const color = (name: string) => style.getPropertyValue(name).trim()
    const show = !this.#phone.matches
    this.#plots = this.#graphs.map((graph) => {
      const axis = { stroke: color('--quiet'), grid: { stroke: color('--line'), width: 1 } }
      const minTop = graph.format === bitrate ? MIN_BITRATE_BPS : 1
      const name = make('span', { textContent: graph.name })
      const caption = make('p', { className: 'caption' }, name, make('b'), make('small'))
      const figure = make('div', {}, caption)
      figure.setAttribute('role', 'img')
      this.#container.append(figure)
      return new uPlot(
        {
          width: widthOf(figure),
          height: this.#height,
          legend: { show: false },
          cursor: { show: false },
          padding: this.#phone.matches ? [4, 2, 4, 2] : [8, 20, 0, 0],
          scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, minTop)] } },
          axes: [
            { ...axis, show, ticks: { show: false }, size: 24, space: 60, values: clockTimes },
            {
              ...axis,
              show,
              ticks: { show: false },
              size: 76,
              space: 32,
              ...(graph.format === count && { incrs: WHOLE }),
              values: (_plot, splits) => splits.map((split) => graph.format(split)),
            },
          ],
          series: [
            {},
            { stroke: color('--accent'), width: 2, spanGaps: false, points: { size: 4 } },
          ],
        },
        this.#data(graph),
        figure,
      )
    })
    this.#refresh()
  }

  #refresh(): void {
    for (const [index, plot] of this.#plots.entries()) {
      const graph = this.#graphs[index]!
      plot.setData(this.#data(graph))
      const figure = plot.root.parentElement!
      figure.setAttribute('aria-label', describe(graph))
      const { now, max } = figuresOf(graph)
      setText(figure.querySelector('b')!, now)
      setText(figure.querySelector('small')!, max === NONE ? '' : `max ${max}`)
    }
  }
}

function clockTimes(_plot: uPlotModule, splits: number[]): string[] {
  const format = { hour: '2-digit', minute: '2-digit', hour12: false } as const
  return splits.map((sec) => new Date(sec * 1000).toLocaleTimeString([], format))
}

function widthOf(figure: HTMLElement): number {
  return figure.clientWidth
}

/** The newest figure, and the range of all that are known. */
function figuresOf({ format, values }: Graph): { now: string; min: string; max: string } {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return { now: NONE, min: NONE, max: NONE }
  const now = format(values.at(-1) ?? undefined)
  return { now, min: format(Math.min(...known)), max: format(Math.max(...known)) }
}

/** The graph in words. */
function describe(graph: Graph): string {
  const { now, min, max } = figuresOf(graph)
  if (max === NONE) return `${graph.name}: no figures in the last 10 minutes`
  return `${graph.name}: now ${now}, from ${min} to ${max} in the last 10 minutes`
}
